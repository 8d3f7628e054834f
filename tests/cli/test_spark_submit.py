"""`kafkapy spark-submit`: its own words sorted from Spark's, and SQL from topic to topic.

Scripts are run by tests/spark/test_fork_server.py.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from dev.docs.mistakes_page import mistakes
from kafkapy.cli.commands.spark_submit import COMMAND, SparkSubmitOptions
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import wait_until
from tests.harness.spark.spark_topics import Topic


@pytest.mark.parametrize(
    ("line", "own", "theirs"),
    [
        ("job.py", {}, "job.py"),
        ("--from a job.py --from b", {"from_": "a"}, "job.py --from b"),
        ("--master x --from=a --verbose job.py", {"from_": "a"}, "--master x --verbose job.py"),
        ("--name --from job.py", {}, "--name --from job.py"),  # a value that looks like ours
        ("--once --conf a=b job.py --once", {"once": True}, "--conf a=b job.py --once"),
        ("--conf=a=b -c", {}, "--conf=a=b -c"),
        ("--help", {"help": True}, ""),
        ("job.py --help", {}, "job.py --help"),
    ],
)
def test_words_are_sorted_up_to_the_script(line: str, own: dict[str, Any], theirs: str) -> None:
    assert COMMAND.read(line.split()) == SparkSubmitOptions(words=theirs.split(), **own)


def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    executable = Path(sys.executable).parent / "kafkapy"
    return subprocess.run(
        [str(executable), "spark-submit", *words],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environ},
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "t"], "Name the script to run"),
        (["--from", "t", "job.py"], "--bootstrap-server is required with --from and --to"),
        (["--from", "t", "--bootstrap-server", "b:1", "nowhere.py"], "Cannot read the script"),
        (["--sql", "SELECT 1", "--from", "t", "job.py"], "job.py is one"),
        (["--sql", "SELECT 1"], "--from is required with --sql"),
        (["--once", "job.py"], "--once is for streams: it needs --checkpoint"),
        (["--metrics-port", "1", "job.py"], "--metrics-port is for streams"),
        (["--columns", "value", "job.py"], "--columns names columns of the topics"),
        (
            ["--from", "t", "--bootstrap-server", "b:1", "--columns=key", "--schema=a INT", "j.py"],
            "--schema reads the column value, which --columns leaves out",
        ),
    ],
)
def test_one_line_for_what_is_wrong(words: list[str], message: str) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_help_says_what_is_added() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "--from TOPICS" in done.stdout
    assert "--checkpoint DIR" in done.stdout


def test_sql_between_topics_until_their_end(broker: BrokerProcess, tmp_path: Path) -> None:
    source, target = (Topic(broker.bootstrap_servers) for _ in range(2))
    source.send((0, None, b'{"user": "u%d", "n": %d}' % (i % 2, i)) for i in range(10))
    words = ["--from", source.name, "--to", target.name, "--once"]
    words += ["--bootstrap-server", broker.bootstrap_servers, "--checkpoint", str(tmp_path / "c")]
    words += ["--schema", "user STRING, n INT", "--sql", "SELECT user, n FROM records WHERE n > 3"]
    (tmp_path / "tmp").mkdir()
    conf = ["--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    done = run(*conf, *words, TMPDIR=str(tmp_path / "tmp"))
    assert done.returncode == 0, done.stderr
    assert " INFO " not in done.stderr
    wait_until(  # the fork server ends after the job
        lambda: not list((tmp_path / "tmp").glob("kafkapy-*")), "no file is left"
    )
    values = values_of(target, 6)
    assert values == [{"user": f"u{n % 2}", "n": n} for n in range(4, 10)]


def values_of(topic: Topic, count: int) -> list[dict[str, object]]:
    consumer = Consumer({"bootstrap.servers": topic.servers, "group.id": "test", **QUIET})
    consumer.assign([TopicPartition(topic.name, 0, 0)])
    messages = consumer.consume(count, timeout=30)
    consumer.close()
    return [json.loads(message.value() or b"") for message in messages]


def run_on_terminal(*words: str, **environ: str) -> tuple[int, str]:
    """The status, and what a person sees."""
    executable = Path(sys.executable).parent / "kafkapy"
    master, slave = os.openpty()
    command = [str(executable), "spark-submit", *words]
    env = {**os.environ, **environ}
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        seen = b""
        with suppress(OSError):  # the end of a terminal
            while part := os.read(master, 4096):
                seen += part
        os.close(master)
    return process.returncode, seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("row", [row for row in mistakes() if row.get("where") == "spark"])
def test_a_topic_that_is_not_there_is_one_line_and_the_log_is_kept(
    row: dict[str, Any], broker: BrokerProcess, tmp_path: Path
) -> None:
    words = shlex.split(row["command"].replace("{plain}", broker.bootstrap_servers))
    status, seen = run_on_terminal("--master", "local[1]", *words[1:], TMPDIR=str(tmp_path))
    assert status == 1
    assert "Traceback" not in seen
    assert " INFO " not in seen
    for line in row["says"]:
        assert re.search(f"^{re.escape(line).replace(re.escape('...'), '.*')}$", seen, re.M), seen
    (log,) = tmp_path.glob("kafkapy-spark-log-*/*")
    assert seen.startswith(f"Spark reads nowhere. Its log is in {log} until it ends; --verbose ")
    assert " INFO SparkContext: " in log.read_text()
