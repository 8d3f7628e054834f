"""A line that is written over, for people only."""

import io

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.live_line import LiveLine
from tests.harness.scripted.cli import Terminal


def test_a_person_sees_the_newest() -> None:
    out = io.StringIO()
    live = LiveLine(Terminal(stdout=out))
    live.show("")
    live.show("1 of 9")
    live.show("2 of 9")
    assert out.getvalue() == "\r\033[K1 of 9", "not more often than it can be read"
    live.clear()
    live.clear()
    assert out.getvalue() == "\r\033[K1 of 9\r\033[K"


def test_a_pipe_sees_nothing() -> None:
    out = io.StringIO()
    live = LiveLine(Environment(stdout=out))
    live.show("1 of 9")
    live.clear()
    assert out.getvalue() == ""
