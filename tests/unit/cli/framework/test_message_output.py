"""The ends of the printing of messages."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Iterator

import pytest

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed
from kafkapy.cli.framework.message_output import message_output
from kafkapy.common.errors import ConfigError

COUNT = "Processed a total of 2 messages\n"


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Iterator[Environment]:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    env = Environment(stdout=io.StringIO(), stderr=io.StringIO())
    yield env
    env.stdout.close()


def printed(
    env: Environment, error: BaseException | None, done: list[str] | None = None
) -> list[str]:
    """The calls to the consumer."""
    done = [] if done is None else done
    with message_output(
        env,
        count=lambda: 2,
        reset_offsets=lambda: done.append("gave back"),
        close=lambda: done.append("closed"),
        enable_systest_events=False,
    ):
        if error is not None:
            raise error
    return done


def said(env: Environment) -> str:
    assert isinstance(env.stderr, io.StringIO)
    return env.stderr.getvalue()


def test_the_end_of_all_messages(env: Environment) -> None:
    assert printed(env, None) == ["closed"]
    assert said(env) == COUNT


def test_no_message_for_long(env: Environment) -> None:
    assert printed(env, TimeoutError()) == ["closed"]
    assert "TimeoutException" in said(env)


def test_a_reader_that_is_gone_gives_messages_back(env: Environment) -> None:
    assert printed(env, BrokenPipeError()) == ["gave back", "closed"]
    assert said(env) == f"Unable to write to standard out, closing consumer.\n{COUNT}"


def test_a_full_disk_fails_the_command(env: Environment) -> None:
    with pytest.raises(CommandFailed, match="standard out: No space left"):
        printed(env, OSError(errno.ENOSPC, "No space left on device"))
    assert said(env) == COUNT


class Unwritable(io.StringIO):
    """Stdout that takes text, and cannot write it."""

    def __init__(self, fault: BaseException) -> None:
        super().__init__()
        self.fault = fault

    def flush(self) -> None:
        raise self.fault


@pytest.mark.parametrize(
    "end", [KeyboardInterrupt(), SystemExit(143), ConfigError("a record that cannot be shown")]
)
@pytest.mark.parametrize("fault", [BrokenPipeError(), KeyboardInterrupt()])
def test_what_is_not_written_at_the_end_is_given_back(
    env: Environment, end: BaseException, fault: BaseException
) -> None:
    """Up to 8 KB of records were committed, which nobody saw."""
    env.stdout = Unwritable(fault)
    done: list[str] = []
    with pytest.raises((type(end), type(fault))):
        printed(env, end, done)
    assert done == ["gave back", "closed"]


def test_an_interrupted_consumer_writes_what_it_read(env: Environment) -> None:
    flushed: list[bool] = []
    env.stdout.flush = lambda: flushed.append(not flushed)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        printed(env, KeyboardInterrupt(), flushed)  # type: ignore[arg-type]
    assert flushed[:2] == [True, "closed"]
