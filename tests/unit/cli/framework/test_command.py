"""From words to an option dataclass, and from a failure to a command's words."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import CommonOptions, flag, value, values
from kafkapy.common.errors import ConfigError


@dataclass
class Some(CommonOptions):
    words: list[str] = values("Words.", metavar="WORD", choices=("go", "stop"))
    loud: bool = flag("Loud.")
    count: int | None = value("Count.", metavar="N")
    codec: str | None = value("Codec.", optional_value="gzip", choices=("gzip", "none"))
    odd: str | None = value("Odd.", name="odd.config")
    many: list[str] = values("Many.")
    wait: int = value("Wait.", default=7)


def parsed(*words: str) -> Some:
    seen: list[Some] = []

    def run(options: Some, env: Environment) -> ExitStatus:
        seen.append(options)
        return ExitStatus.SUCCESS

    command = Command("some", Some, run, help="Some.", operands="words", bare=True)
    invoke(command, *words)
    return seen[0]


def invoke(command: Command[Some], *words: str) -> int:
    return command.execute(command.read(words), Environment(), words)


def test_nothing_given_is_the_defaults() -> None:
    assert parsed() == Some()


def test_every_kind_of_option() -> None:
    words = ["go", "-loud", "--count", "-3", "--codec", "--odd.config=f", "--many", "a"]
    assert parsed(*words, "--many=b", "file") == Some(
        words=["go", "file"], loud=True, count=-3, codec="gzip", odd="f", many=["a", "b"]
    )


def test_a_question_is_all_that_is_read() -> None:
    command = Command("some", Some, lambda o, e: ExitStatus.SUCCESS, help="Some.", operands="words")
    assert command.read(["-h", "--count", "x", "go"]) == Some(help=True, words=["go"])
    assert command.read(["--version", "--output=yaml"]) == Some(version=True)
    with pytest.raises(UsageError, match="nope is not a recognized option"):
        command.read(["--help", "--nope"])


def test_a_status_that_is_not_success_ends_the_run() -> None:
    command = Command("some", Some, lambda o, e: ExitStatus.FAILURE, help="Some.", bare=True)
    assert invoke(command) == ExitStatus.FAILURE


def test_no_words_at_all_is_wrong_usage() -> None:
    command = Command("some", Some, lambda o, e: ExitStatus.SUCCESS, help="Some help.")
    with pytest.raises(UsageError, match="some needs options: Some help"):
        invoke(command)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ConfigError("bad"), CommandFailed, "Error with --count=1: bad"),
        (UsageError("bad"), UsageError, "bad"),
        (CommandFailed("bad"), CommandFailed, "bad"),
    ],
)
def test_failures_are_framed(error: Exception, kind: type[Exception], said: str) -> None:
    def run(options: Some, env: Environment) -> ExitStatus:
        raise error

    command = Command("some", Some, run, help="Some.", failure="Error with {words}: {}")
    with pytest.raises(kind) as caught:
        invoke(command, "--count=1")
    assert str(caught.value) == said


def test_what_completions_read() -> None:
    command = Command("some", Some, lambda o, e: ExitStatus.SUCCESS, help="Some.", operands="words")
    specs = {spec.names[0]: spec for spec in command.specs()}
    assert "words" not in specs
    assert command.operand_choices() == ("go", "stop")
    assert specs["codec"].choices == ("gzip", "none")
    assert specs["wait"].default == "7"
    assert specs["many"].repeatable
    assert not specs["loud"].takes_value
    assert next(iter(specs)) == "help"
    assert list(specs)[-3:] == ["output", "debug", "version"]
