"""The text of `--help`, made by Typer's formatter from the definitions of the commands.

Typer's rich help is off: importing rich takes even longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.command_table import COMMANDS, GROUPS, ROOT_OPTIONS
from kafkapy.cli.framework.jopt import OptionSpec


def of_all() -> str:
    """The help of kafkapy itself: its commands under the headings of GROUPS."""
    about = "Kafka for Python: a broker, operations tools, and topics as Spark tables."
    page = _new_page("kafkapy", "[OPTIONS] COMMAND [ARGS]...", about)
    _write_options(page, "Options", ROOT_OPTIONS)
    for heading, names in GROUPS.items():
        with page.section(heading):
            page.write_dl([(name, COMMANDS[name]) for name in names])
    return _text(page)


def of_command(name: str, command: Command[Any]) -> str:
    """The help of a command: examples, operands, and options under their headings. `name` is the
    name with which the command was called."""
    operand = command.operand()
    words = "" if operand is None else operand.metavar
    usage = f" {words if words.startswith('[') else f'[{words}]'}" if words else ""
    page = _new_page(f"kafkapy {name}", f"[OPTIONS]{usage}", command.help)
    with page.section("Examples"):
        for index, (about, line) in enumerate(command.example_lines()):
            page.write("\n" if index else "")
            page.write_text(about)
            page.write(folded(line, page.width, page.current_indent + 2))
    if operand is not None:
        with page.section("Words"):
            page.write_dl([(words, operand.help)])
    for heading, specs in command.sections().items():
        _write_options(page, heading, specs)
    return _text(page)


def _new_page(name: str, words: str, about: str) -> Any:
    """A page with usage and description, but without options."""
    page = typer.Context(TyperCommand(name), max_content_width=100).make_formatter()
    page.write_usage(name, words)
    page.write_paragraph()
    with page.indentation():
        page.write_text(about)
    return page


def _write_options(page: Any, heading: str, specs: Iterable[OptionSpec]) -> None:
    with page.section(heading):
        page.write_dl([_row(spec) for spec in specs])


def _row(spec: OptionSpec) -> tuple[str, str]:
    """The names of an option, its letter first, with its value; and its help."""
    names = [f"-{name}" if len(name) == 1 else f"--{name}" for name in sorted(spec.names, key=len)]
    value = f" {spec.metavar}" if spec.takes_value else ""
    default = f"  [default: {spec.default}]" if spec.default else ""
    return ", ".join(names) + value, spec.help + default


def _text(page: Any) -> str:
    text: str = page.getvalue()
    return text.rstrip("\n")


def folded(line: str, width: int, indent: int) -> str:
    """A command line in shell syntax, folded to lines of at most `width` if its words allow it."""
    lines, margin = [""], " " * indent
    for words in line.split(" --"):
        piece = f" --{words}" if lines[-1] else words
        if lines[-1] and indent + len(lines[-1] + piece) + len(" \\") > width:
            lines.append("   ")
        lines[-1] += piece
    return " \\\n".join(margin + each for each in lines) + "\n"
