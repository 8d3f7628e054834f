"""The root: help of every command, unknown ones, errors as one line."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import NoReturn

import pytest

from kafkapy import __version__
from kafkapy.cli.framework.command_line import report
from kafkapy.cli.framework.command_table import COMMANDS
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.common.errors import KafkapyError
from tests.harness.scripted.cli import kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_on_stdout(command: str, flag: str) -> None:
    outcome = kafkapy(command, flag)
    assert (outcome.status, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith(f"Usage: kafkapy {command}")
    assert "--output" in outcome.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_the_version(command: str) -> None:
    outcome = kafkapy(command, "--version")
    assert (outcome.stdout, outcome.status) == (f"{__version__}\n", 0)


@pytest.mark.parametrize("words", [(), ("-h",), ("--help",)])
def test_the_root_lists_every_command(words: tuple[str, ...]) -> None:
    outcome = kafkapy(*words)
    assert outcome.status == 0
    assert all(f"  {name} " in outcome.stdout for name in COMMANDS)


def test_the_version_of_all() -> None:
    assert kafkapy("--version").stdout == f"{__version__}\n"


def test_an_unknown_command_names_the_nearest() -> None:
    outcome = kafkapy("topic")
    assert outcome.stderr.splitlines() == [
        "topic is not a kafkapy command; did you mean topics?",
        "Try 'kafkapy --help'.",
    ]
    assert (outcome.stdout, outcome.status) == ("", 1)


def test_words_in_front_of_a_command_are_read_by_the_same_rules() -> None:
    nope = kafkapy("--nope", "topics")
    assert nope.stderr == "nope is not a recognized option\nTry 'kafkapy --help'.\n"
    assert kafkapy("-version", "topics", "--nope").stdout == f"{__version__}\n"
    assert kafkapy("--", "version", "--output=text").stdout == kafkapy("version").stdout


def test_a_usage_error_is_two_lines_on_stderr() -> None:
    outcome = kafkapy("topics", "--list", "--nope")
    assert outcome.stderr == "nope is not a recognized option\nTry 'kafkapy topics --help'.\n"
    assert outcome.status == 1


def test_a_failure_is_one_line_in_the_commands_words() -> None:
    cluster = ScriptedCluster({})
    cluster.refuse = {1}
    outcome = kafkapy("topics", "--list", "--bootstrap-server", "b:1", cluster=cluster)
    assert outcome.stderr == (
        "Error while executing topic command : No bootstrap server can be reached. "
        "Connection to b:1 could not be established: Connection refused\n"
    )
    assert outcome.status == 1


def test_a_bad_choice_names_what_is_allowed() -> None:
    outcome = kafkapy("version", "--output", "yaml")
    assert "'text', 'table', 'json'" in outcome.stderr
    assert outcome.status == 1


def test_debug_raises_what_went_wrong() -> None:
    cluster = ScriptedCluster({})
    cluster.refuse = {1}
    words = ("topics", "--list", "--bootstrap-server", "b:1", "--debug")
    with pytest.raises(Exception, match="No bootstrap server can be reached"):
        kafkapy(*words, cluster=cluster)


def test_a_reader_that_went_away_is_no_fault() -> None:
    script = (
        "kafkapy() { '%s' -m kafkapy.cli.main \"$@\"; }; kafkapy -h | true; kafkapy -h | head -1"
    )
    done = subprocess.run(
        ["bash", "-c", script % sys.executable], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.startswith("Usage: kafkapy")


def test_a_failure_is_told_though_the_reader_of_results_went_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Gone(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    errors = io.StringIO()
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    env = Environment(stdout=Gone(), stderr=errors)
    assert report(env, KafkapyError("refused"), ()) is ExitStatus.FAILURE
    env.stdout.close()
    assert errors.getvalue() == "refused\n"


def test_ctrl_c_is_silent_and_has_its_status() -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    cluster = ScriptedCluster({})
    cluster.connect = interrupted  # type: ignore[method-assign]
    outcome = kafkapy("topics", "--list", "--bootstrap-server", "b:1", cluster=cluster)
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 130)


def test_what_the_environment_says_to_a_jvm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HEAP_OPTS", "-Xmx1g")
    monkeypatch.setenv("KAFKA_LOG4J_OPTS", "-Dlog4j.configuration=file:/x")
    named = "Without effect, because there is no JVM here: KAFKA_HEAP_OPTS, KAFKA_LOG4J_OPTS\n"
    for command in ("server", "topics"):
        assert kafkapy(command, "start", "/nope").stderr.startswith(named)
    starting = kafkapy("zookeeper", "start", "/nope").stderr
    assert starting.startswith("Without effect, because ZooKeeper's logging is set here: KAFKA_LOG")
    assert "JVM" not in kafkapy("reassign", "--version").stdout
