"""The process as commands see it."""

import io
import sys

import pytest

from kafkapy.cli.framework.environment import Environment


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_results_and_warnings_go_their_own_ways() -> None:
    env = Environment(stdout=io.StringIO(), stderr=io.StringIO())
    env.write("a")
    env.line("b")
    env.warn("c")
    assert isinstance(env.stdout, io.StringIO)
    assert isinstance(env.stderr, io.StringIO)
    assert (env.stdout.getvalue(), env.stderr.getvalue()) == ("ab\n", "c\n")


def test_a_group_id_of_another_client_cannot_control_an_operators_terminal() -> None:
    """It could set the clipboard, hide rows, or forge the lines that the operator acts on."""
    name = "payments\x1b]52;c;cm0=\x07\x9b2J\r"
    shown, piped = Screen(), io.StringIO()
    env = Environment(stdout=shown, stderr=shown)
    env.line(f"{name}\té")
    env.warn(name)
    safe = "payments\\u001b]52;c;cm0=\\u0007\\u009b2J\\u000d"
    assert shown.getvalue() == f"{safe}\té\n{safe}\n"
    Environment(stdout=piped).line(name)
    assert piped.getvalue() == f"{name}\n"  # programs get what Kafka's tools print


def test_who_is_looking() -> None:
    pipe, screen = io.StringIO(), Screen()
    assert Environment(stdin=screen, stdout=screen).interactive
    assert not Environment(stdin=pipe, stdout=screen).interactive
    assert Environment(stdin=pipe, stdout=screen).on_terminal
    assert not Environment(stdin=screen, stdout=pipe).on_terminal


def test_a_closed_stream_is_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`kafkapy ... >&- 2>&-`: what is to be done is done, and nobody is told."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    env = Environment()
    env.line("lost")
    env.warn("lost too")
    assert not env.on_terminal
    assert env.stdin.read() == ""
    for stream in (env.stdin, env.stdout, env.stderr):
        stream.close()


def test_an_abandoned_stdout_takes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    env = Environment()
    env.abandon_stdout()
    env.line("lost")
    assert sys.stdout is env.stdout
    env.stdout.close()


def test_abandoned_output_takes_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    env = Environment()
    env.abandon_output()
    with env.stdout, env.stderr:
        env.warn("nobody reads this")
        assert (sys.stdout, sys.stderr) == (env.stdout, env.stderr)
