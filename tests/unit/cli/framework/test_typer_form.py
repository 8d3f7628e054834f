"""Typer's form of a command makes the same of a command line as our own reading does."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.command_table import COMMANDS, commands, load
from kafkapy.cli.framework.drop_in_names import DROP_IN
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.typer_form import call, typer_command
from tests.harness.scripted.cli import kafkapy
from tests.harness.tools.tool_lines import read_commands

RUNBOOKS = Path(__file__).parents[3] / "data" / "runbooks"


def recorded_lines() -> list[tuple[str, ...]]:
    """The command lines of the conformance table and of the runbooks, good and bad."""
    lines = [
        (line.words[0], *line.arguments("b1:9092,b2:9092", Path("/run")))
        for line in read_commands()
        if not line.is_step
    ]
    for runbook in sorted(RUNBOOKS.iterdir()):
        for text in runbook.read_text().replace("\\\n", " ").splitlines():
            words = shlex.split(text, comments=True)
            if words and words[0] in DROP_IN:
                lines.append((*DROP_IN[words[0]], *words[1:]))
    return lines


def declared_lines(command: Command[Any]) -> list[tuple[str, ...]]:
    """Every option of a command on its own, in the ways in which it can be written."""
    lines: list[tuple[str, ...]] = [()]
    for spec in command.specs():
        for name in spec.names:
            dashes = "-" if len(name) == 1 else "--"
            lines += [(dashes + name,), (f"-{name}", "--debug")]
            for text in ("", "7", "-7", "1.5", "a=b", "a b", "-x", "--", "\u0667", *spec.choices):
                lines += [(dashes + name, text), (f"{dashes}{name}={text}",)]
                lines += [(dashes + name, text, "word", f"-{name}={text}")]
    operands = ("word",), ("-", "word"), ("--", "-5", "--debug"), ("-5",), ("a", "--", "b"), ("",)
    mixed = ("--output", "json", "--debug", "a", "b", "--help"), ("a", "--version")
    return [*lines, *operands, *mixed]


class Twin:
    """A command by both readings; its `run` notes what it is called with."""

    def __init__(self, command: Command[Any]) -> None:
        declared = {each.name: getattr(command, each.name) for each in fields(command)}
        self._command = type(command)(**{**declared, "run": self._note})
        self._typers = typer_command(self._command)
        self._seen: list[Any] = []

    def _note(self, options: Any, env: Environment) -> ExitStatus:
        self._seen.append(options)
        return ExitStatus.SUCCESS

    def by_typer(self, words: Sequence[str]) -> Any:
        """The options, or the error's words; None for help and versions."""
        self._seen.clear()
        try:
            call(self._typers, words, Environment())
        except UsageError as error:
            return str(error)
        return self._seen[0] if self._seen else None

    def by_reading(self, words: Sequence[str]) -> Any:
        """The same; None for what is left to Typer."""
        try:
            return self._command.read(words)
        except UsageError as error:
            return str(error)

    def check(self, words: Sequence[str]) -> None:
        """Typer is asked only when it has more to say than what the options are."""
        read, typers = self.by_reading(words), self.by_typer(words)
        assert read == typers or (read is None and isinstance(typers, str)), words


@pytest.mark.parametrize("name", COMMANDS)
def test_each_declared_option_is_read_as_typer_does(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    twin = Twin(load(name))
    for words in declared_lines(load(name)):
        twin.check(words)


def test_each_recorded_line_is_read_as_typer_does(capsys: pytest.CaptureFixture[str]) -> None:
    twins = {name: Twin(command) for name, command in commands().items()}
    lines = recorded_lines()
    assert len(lines) > 250
    for name, *words in lines:
        twins[name].check(words)


def test_words_of_what_is_run_are_not_ours() -> None:
    words = Twin(load("zookeeper-shell")).by_typer(["z:1", "get", "/a", "--version"])
    assert words.words == ["z:1", "get", "/a", "--version"]


def test_what_typer_says_is_wrong_is_wrong_usage() -> None:
    assert kafkapy("version", "--output", "yaml").stderr.splitlines() == [
        "Invalid value for '--output': 'yaml' is not one of 'text', 'table', 'json'.",
        "Try 'kafkapy version --help'.",
    ]
