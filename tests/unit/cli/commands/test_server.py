"""`kafkapy server`: what is started, who is stopped, without any broker."""

from __future__ import annotations

import errno
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.cli.commands.server import _supervise
from kafkapy.cli.framework.environment import Environment
from kafkapy.tools.local import broker_processes
from kafkapy.tools.supervisor import supervisor
from tests.harness.scripted.cli import kafkapy


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The properties of brokers that were run; they end at once with status 0. One that ends with
    its input says so."""
    ran: list[dict[str, str]] = []

    def run(properties: dict[str, str], until_eof: bool) -> int:
        ran.append(properties | {"until": "eof"} if until_eof else properties)
        return int(properties.get("status", 0))

    monkeypatch.setitem(sys.modules, "kafkapy.server.process", SimpleNamespace(run=run))
    return ran


def test_start_with_a_file_and_overrides(started: Any, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("a=1\nb=2\n")
    words = ("--override", "b=3=4", "--override", "c")
    assert kafkapy("server", "start", str(file), *words).status == 0
    assert started == [{"a": "1", "b": "3=4", "c": ""}]


def test_start_resolves_the_variables_of_the_file_and_of_overrides(
    started: Any, tmp_path: Path
) -> None:
    file, secrets = tmp_path / "server.properties", tmp_path / "secrets.properties"
    secrets.write_text("a=1\nb=2\n")
    provider = "config.providers.file.class=org.apache.kafka.common.config.provider"
    file.write_text(
        f"config.providers=file\n{provider}.FileConfigProvider\na=${{file:{secrets}:a}}\n"
    )
    override = f"b=${{file:{secrets}:b}}"
    assert kafkapy("server", "start", str(file), "--override", override).status == 0
    assert started == [{"a": "1", "b": "2"}]


def test_start_needs_no_file_and_has_the_brokers_status(started: Any) -> None:
    assert kafkapy("server", "start").status == 0
    assert kafkapy("server", "start", "--override", "status=1").status == 1
    assert kafkapy("server", "start", "--until-eof").status == 0
    assert started == [{}, {"status": "1"}, {"until": "eof"}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--override", "a=b"], "Name an action: kafkapy server start|stop"),
        (["restart"], "Name an action: kafkapy server start|stop"),
        (["start", "a", "b", "c"], "Found non argument parameters: b,c"),
        (["start", "--daemon", "--until-eof"], "--until-eof is for one broker in the foreground"),
        (["start", "--processes", "2", "--until-eof"], "--until-eof is for one broker"),
        (["start", "--processes", "some"], "--processes is a number, or auto: not some"),
        (
            ["start", "--processes", "2", "--override", "kafkapy.metrics.port=x"],
            "Invalid value x for configuration kafkapy.metrics.port",
        ),
        (["start", "--processes", "200"], "--processes must be 1 to 128, not 200"),
        (["install-service"], "A property file is required"),
        (["install-service", "/dev/null"], "An account is required: --run-as ACCOUNT, or --user"),
        (["install-service", "/dev/null", "--run-as", "no-one"], "There is no account no-one"),
        (
            ["install-service", "/dev/null", "--user", "--processes", "some"],
            "--processes is a number, or auto: not some",
        ),
        (
            ["install-service", "/dev/null", "--user", "--processes", "200"],
            "--processes must be 1 to 128, not 200",
        ),
        (
            ["install-service", "/dev/null", "--user", "--override", "broker.id=3"],
            'Option "[override]" can\'t be used with "install-service"',
        ),
        (["start", "--run-as", "kafka"], 'Option "[run-as]" can\'t be used with "start"'),
        # A template of two unset variables; IndexError, with "a bug in kafkapy".
        (["start", "--daemon", "--override", "log.dirs=,"], "log.dirs is empty: name at least one"),
        (["stop", "--override", "log.dirs=,"], "log.dirs is empty: name at least one directory"),
        (["start", "/nope"], "Cannot read /nope: No such file or directory"),
        (["stop", "--timeout-ms", "3000000000"], "Cannot parse argument '3000000000' of option t"),
        (["stop", "--log-dir", "/nope", "--pid", "x"], "Cannot parse argument 'x' of option pid"),
    ],
)
def test_wrong_usage(started: Any, words: list[str], said: str) -> None:
    outcome = kafkapy("server", *words)
    assert outcome.stderr.startswith(said)
    assert (outcome.status, started) == (1, [])


class Processes:
    """A stand-in for the processes of the machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *pids: int) -> None:
        self.pids = list(pids)
        self.stopped: list[tuple[int, float, int]] = []
        self.stubborn: set[int] = set()
        monkeypatch.setattr(broker_processes, "running_brokers", lambda: self.pids)
        monkeypatch.setattr(broker_processes, "is_broker", lambda pid: pid in self.pids)
        monkeypatch.setattr(broker_processes, "stop", self.stop)
        monkeypatch.setattr(broker_processes, "broker_of", self.broker_of)

    def stop(self, pid: int, limit_s: float, sent: int) -> bool:
        self.stopped.append((pid, limit_s, sent))
        return pid not in self.stubborn

    def broker_of(self, directories: list[str]) -> int | None:
        return 7 if "/logs" in directories else None


def test_stop_ends_every_broker_as_kafkas_script_does(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = Processes(monkeypatch, 5, 6)
    outcome = kafkapy("server", "stop")
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 0)
    assert processes.stopped == [(5, 60.0, 15), (6, 60.0, 15)]


@pytest.mark.parametrize(
    ("words", "pid"),
    [
        (["--pid", "5"], 5),
        (["--log-dir", "/logs"], 7),
        (["--override", "log.dirs=/other,/logs"], 7),
    ],
)
def test_stop_of_one(monkeypatch: pytest.MonkeyPatch, words: list[str], pid: int) -> None:
    processes = Processes(monkeypatch, 5, 6)
    kafkapy("server", "stop", "--signal", "int", "--timeout-ms", "500", *words)
    assert processes.stopped == [(pid, 0.5, 2)]


@pytest.mark.parametrize("words", [[], ["--pid", "9"], ["--log-dir", "/none"]])
def test_nobody_to_stop(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    Processes(monkeypatch)
    outcome = kafkapy("server", "stop", *words)
    assert (outcome.stdout, outcome.status) == ("No kafka server to stop\n", 1)


def test_an_empty_shell_variable_stops_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = Processes(monkeypatch, 5, 7)
    monkeypatch.setattr(broker_processes, "broker_of", lambda directories: 7)
    outcome = kafkapy("server", "stop", "")
    assert outcome.stderr.startswith("Cannot read : No such file or directory")
    assert (outcome.status, processes.stopped) == (1, [])


def test_a_broker_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    Processes(monkeypatch, 5, 6).stubborn = {6}
    outcome = kafkapy("server", "stop", "--timeout-ms", "10")
    assert (outcome.stderr, outcome.status) == ("Still running after 10 ms: 6\n", 1)


def test_an_unknown_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    Processes(monkeypatch, 5)
    outcome = kafkapy("server", "stop", "--signal", "LOUD")
    assert outcome.stderr.startswith("LOUD is not the name of a signal")


def test_a_daemon_is_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []

    def start(words: list[str], directories: list[str], name: str) -> tuple[int, Path]:
        asked.append((words, directories, name))
        return 12, tmp_path / "out"

    monkeypatch.setattr(broker_processes, "start_in_background", start)
    words = ("-daemon", "--override", "log.dirs=/a,/b")
    outcome = kafkapy("server", "start", *words)
    assert outcome.stdout == f"Started the broker with pid 12; its output is in {tmp_path}/out\n"
    assert asked == [(["--override=log.dirs=/a,/b"], ["/a", "/b"], "kafkaServer.out")]


def test_a_service_of_the_user_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "server.properties"
    file.write_text("broker.id=1\n")
    words = ("server", "install-service", str(file), "--user")
    first = kafkapy(*words)
    unit = tmp_path / "config" / "systemd" / "user" / "kafkapy.service"
    environment = tmp_path / "config" / "kafkapy.env"
    assert first.status == 0
    assert f"Wrote {unit}" in first.stdout
    assert "systemctl --user enable --now kafkapy.service" in first.stdout
    assert str(file) in unit.read_text()
    environment.write_text("KAFKA_OPTS=-Da=b\n")
    assert kafkapy(*words, "--processes", "2").status == 0
    assert "--processes 2" in unit.read_text()
    assert environment.read_text() == "KAFKA_OPTS=-Da=b\n", "it is the operator's"


def test_a_full_disk_does_not_end_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    class Talking:
        def __init__(self, *given: Any) -> None:
            self._say = given[-1]

        def start(self) -> None:
            self._say("Broker 0: ended with status 1")

        def run(self) -> int:
            return 0

    monkeypatch.setattr(supervisor, "Supervisor", Talking)
    assert _supervise("1", [], {}, Environment(stdout=Full())) == 0
