"""Brokers as processes: found by pid files and by their command lines, stopped by pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools import broker_processes as processes

BROKER = ("/venv/bin/python", "/venv/bin/kafkapy", "server", "start", "--override", "a=b")


def make_proc(root: Path, commands: dict[int, tuple[str, ...]]) -> Path:
    """A `/proc` with these command lines."""
    for pid, words in commands.items():
        directory = root / str(pid)
        directory.mkdir(parents=True)
        (directory / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
    (root / "self").mkdir()
    return root


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (BROKER, True),
        (("python", "-m", "kafkapy.cli.main", "server", "start"), True),
        (("python", "/venv/bin/kafkapy", "server", "stop"), False),
        (("python", "/venv/bin/kafkapy", "topics", "--list"), False),
        (("java", "kafka.Kafka", "server", "start"), False),
        (("tail", "/venv/bin/kafkapy"), False),
        ((), False),
    ],
)
def test_what_a_broker_looks_like(tmp_path: Path, words: tuple[str, ...], expected: bool) -> None:
    assert processes.is_broker(5, make_proc(tmp_path, {5: words})) is expected


def test_all_brokers_of_this_machine(tmp_path: Path) -> None:
    proc = make_proc(tmp_path, {9: BROKER, 5: BROKER, 7: ("sleep", "1")})
    assert processes.running_brokers(proc) == [5, 9]


def test_a_pid_file_is_believed_only_if_a_broker_has_the_pid(tmp_path: Path) -> None:
    proc = make_proc(tmp_path / "proc", {5: BROKER, 6: ("vi",)})
    for name, text in {"a": "5\n", "b": "6\n", "c": "x", "d": "777\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / processes.PID_FILE).write_text(text)

    def found(*names: str) -> int | None:
        return processes.broker_of([str(tmp_path / name) for name in names], proc)

    assert found("a") == 5
    assert [found(name) for name in ("b", "c", "d", "missing")] == [None] * 4
    assert found("missing", "b", "a") == 5


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, ["/tmp/kafka-logs"]),
        ({"log.dir": "/a"}, ["/a"]),
        ({"log.dir": "/a", "log.dirs": "/b, /c,"}, ["/b", "/c"]),
    ],
)
def test_log_dirs(properties: dict[str, str], expected: list[str]) -> None:
    assert processes.log_dirs(properties) == expected


def test_stop_waits_for_the_end() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    assert processes.stop(child.pid, 30)
    assert child.wait() == -signal.SIGTERM
    assert processes.stop(child.pid, 0)


def test_stop_gives_up_at_its_limit() -> None:
    program = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True);"
        "signal.pause()"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        assert not processes.stop(child.pid, 0)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def test_a_daemon_that_ends_is_reported_with_its_last_words(tmp_path: Path) -> None:
    words = ["/nope/server.properties"]
    with pytest.raises(ConfigError, match=r"ended with status 1\.\n  Cannot read /nope"):
        processes.start_in_background(words, [str(tmp_path / "logs")], 60)
    assert (tmp_path / "logs" / processes.OUTPUT_FILE).exists()


def test_output_goes_where_log_dir_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "elsewhere"))
    with pytest.raises(ConfigError):
        processes.start_in_background(["/nope"], [str(tmp_path / "logs")], 60)
    assert (tmp_path / "elsewhere" / processes.OUTPUT_FILE).exists()
