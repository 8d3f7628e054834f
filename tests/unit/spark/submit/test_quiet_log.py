"""Spark's log in a file: when it goes there, and what is left of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy.spark.submit import quiet_log
from kafkapy.spark.submit.submit import split


@pytest.mark.parametrize(
    "words",
    [
        "--verbose job.py",
        "--deploy-mode cluster job.py",
        "--remote sc://host job.py",
        "--driver-java-options -Dlog4j2.configurationFile=mine job.py",
        "--conf spark.log.level=INFO job.py",
    ],
)
def test_a_log_that_was_asked_for_stays_where_it_is(words: str, tmp_path: Path) -> None:
    assert quiet_log.has_own_log(split(words.split()), tmp_path, {})


def test_settings_of_the_machine_stay_as_well(tmp_path: Path) -> None:
    job = split(["--master", "local[1]", "job.py", "--verbose"])
    assert not quiet_log.has_own_log(job, tmp_path, {})
    assert quiet_log.has_own_log(job, tmp_path, {"SPARK_SUBMIT_OPTS": "-Dlog4j2.x=y"})
    (tmp_path / "conf").mkdir()
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.write_text("spark.log.level WARN\n")
    assert quiet_log.has_own_log(job, tmp_path, {})
    defaults.write_text("spark.ui.enabled false\n")
    assert not quiet_log.has_own_log(job, tmp_path, {})
    (tmp_path / "conf" / "log4j2.properties").touch()
    assert quiet_log.has_own_log(job, tmp_path, {})
    assert not quiet_log.has_own_log(job, tmp_path, {"SPARK_CONF_DIR": str(tmp_path)})


def test_the_log_is_kept_when_the_job_failed_only() -> None:
    done, failed = quiet_log.open_log(), quiet_log.open_log()
    for log in (done, failed):
        option = log.environ({"SPARK_SUBMIT_OPTS": "-Da=b"})["SPARK_SUBMIT_OPTS"]
        assert option.startswith("-Da=b -Dlog4j2.configurationFile=file:///")
        config = Path(option.partition("file://")[2]).read_text()
        assert f"appender.file.fileName = {log.file}\n" in config
        log.file.write_text("INFO all of it\n")
    assert not done.close(0)
    assert not done.directory.exists()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        stopped = quiet_log.open_log()
        stopped.file.touch()
        assert not stopped.close(128 + number)
        assert not stopped.directory.exists()
    assert failed.close(1)
    assert [path.name for path in failed.directory.iterdir()] == ["spark.log"]
    failed.close(0)
    assert not failed.directory.exists()


def test_nothing_is_left_of_a_job_that_did_not_begin() -> None:
    log = quiet_log.open_log()
    assert not log.close(1)
    assert not log.directory.exists()


RUN = """
import os, sys
from kafkapy.spark.submit.quiet_log import run
sys.exit(run([sys.executable, "-c", sys.argv[1]], dict(os.environ)))
"""


def status_of(program: str) -> int:
    done = subprocess.run([sys.executable, "-c", RUN, program], timeout=60, capture_output=True)
    return done.returncode


def test_the_status_is_that_of_spark_submit() -> None:
    assert status_of("import sys; sys.exit(3)") == 3
    assert status_of("import os; os.kill(os.getpid(), 9)") == 137


def test_a_signal_reaches_spark_submit() -> None:
    # The child sends it to the process that waits, and ends by its handler.
    program = (
        "import os, signal, sys; signal.signal(15, lambda *_: sys.exit(7));"
        " os.kill(os.getppid(), 15); signal.pause()"
    )
    assert status_of(program) == 7
