"""A password is on no command line, and what Spark reads of it is gone when Spark is."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_properties import parse_properties
from kafkapy.spark.submit import submit
from kafkapy.spark.submit.secret_properties import REDACTION, properties_file
from kafkapy.spark.submit.submit import JobConf, Submission

JAAS = 'x required username="u" password="it\'s \\"secret\\"";'
WIRED = JobConf("t", properties={"bootstrap.servers": "b:1", "sasl.jaas.config": JAAS, "é": "ü\n"})
OPEN = JobConf("t", properties={"bootstrap.servers": "b:1"})
NAME = "spark.kafkapy.kafka.sasl.jaas.config"


def content(line: str, home: Path, job_conf: JobConf = WIRED) -> dict[str, str]:
    found = submit.properties_of(submit.split(line.split()), job_conf, home, {})
    return {} if found is None else parse_properties(found.decode("latin-1"))


def test_properties_are_in_a_file_and_not_among_the_words(tmp_path: Path) -> None:
    submission = Submission(("--name", "n"), "x.jar", ())
    words = submit.command_line(submission, WIRED, tmp_path, tmp_path, "/the/file")
    assert words[words.index("--properties-file") + 1] == "/the/file"
    assert "secret" not in " ".join(words)
    assert "spark.kafkapy.kafka.bootstrap.servers=b:1" in words
    found = content("job.py", tmp_path)
    assert (found[NAME], found["spark.kafkapy.kafka.é"]) == (JAAS, "ü\n")


def test_without_secrets_there_is_no_file(tmp_path: Path) -> None:
    assert content("x.jar", tmp_path, OPEN) == {}
    words = submit.command_line(submit.split(["x.jar"]), OPEN, tmp_path, tmp_path)
    assert "--properties-file" not in words


def test_letters_beyond_ascii_are_in_the_file(tmp_path: Path) -> None:
    """In the locale C, a JVM would replace them in its words."""
    job_conf = JobConf("t", sql="SELECT 'ü'", properties={"bootstrap.servers": "b:1"})
    assert content("", tmp_path, job_conf)["spark.kafkapy.sql"] == "SELECT 'ü'"
    words = submit.command_line(submit.split([]), job_conf, tmp_path, tmp_path, "/the/file")
    assert all(map(str.isascii, words))
    assert "spark.kafkapy.from=t" in words


def test_the_users_own_file_or_sparks_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.a  defaults")
    own = tmp_path / "own.conf"
    own.write_text("spark.a=own\nspark.redaction.regex=mine\n")
    assert content("job.py", tmp_path)["spark.a"] == "defaults"
    found = content(f"--properties-file {own} job.py", tmp_path)
    assert (found["spark.a"], found["spark.redaction.regex"]) == ("own", "mine")
    with pytest.raises(ConfigError, match="Cannot read /nowhere"):
        content("--properties-file /nowhere job.py", tmp_path)
    submission = submit.split(["--properties-file", str(own), f"--properties-file={own}", "x.jar"])
    words = submit.command_line(submission, WIRED, tmp_path, tmp_path, "/the/file")
    assert [word for word in words if "propert" in word] == ["--properties-file"]
    assert "/the/file" in words
    assert str(own) not in " ".join(words)


def test_spark_hides_them_unless_the_user_says_what_to_hide(tmp_path: Path) -> None:
    pattern = content("job.py", tmp_path)["spark.redaction.regex"]
    for name in ("sasl.jaas.config", "ssl.keystore.key", "basic.auth.user.info"):
        assert re.search(pattern, f"spark.kafkapy.kafka.{name}")
    line = "--conf spark.redaction.regex=mine job.py"
    assert "spark.redaction.regex" not in content(line, tmp_path)


READ_TWICE = """
import os, sys
from kafkapy.spark.submit import secret_properties
if sys.argv[1] == "named":
    del os.memfd_create
path = secret_properties.properties_file(b"content")
print(path, oct(os.stat(path).st_mode & 0o777), flush=True)
os.execv("/bin/sh", ["sh", "-c", f"cat {path}; cat {path}"])
"""


@pytest.mark.parametrize("kind", ["memory", "named"])
def test_the_next_program_and_its_children_read_it_and_then_it_is_gone(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ_TWICE, kind], capture_output=True, text=True, check=True
    )
    where, twice = done.stdout.split("\n")
    path, mode = where.split()
    assert (mode, twice) == ("0o600", "contentcontent")
    if kind == "named":  # who removes it held the output open until it had
        assert not Path(path).parent.exists()


def test_nobody_else_may_open_it() -> None:
    path = properties_file(b"x")
    try:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    finally:
        os.close(int(path.rpartition("/")[2]))


def test_the_redaction_of_the_loaded_defaults_hides_what_the_user_wants_hidden(
    tmp_path: Path,
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.redaction.regex (?i)salary|jaas")
    own = tmp_path / "own.conf"
    own.write_text("spark.a b")
    assert REDACTION in content(f"--properties-file {own} job.py", tmp_path)
    loaded = f"--load-spark-defaults --properties-file {own} job.py"
    assert REDACTION not in content(loaded, tmp_path)
