"""The examples in the help of every command, for docs/reference/commands.md."""

from __future__ import annotations

from typing import Final

from kafkapy.cli.framework.command import load
from kafkapy.cli.framework.command_table import GROUPS

_MARK: Final = "<!-- run by tests/cli/test_examples.py: each by itself -->"


def page() -> str:
    """A block for each group of commands, in the order of the help."""
    return "\n\n".join(f"### {heading}\n\n{_block(names)}" for heading, names in GROUPS.items())


def _block(names: tuple[str, ...]) -> str:
    commands = [load(name) for name in names if load(name).name == name]
    lines = [
        f"# {about}\n{line}\n" for command in commands for about, line in command.example_lines()
    ]
    return f"{_MARK}\n\n```sh\n" + "\n".join(lines) + "```"
