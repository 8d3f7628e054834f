"""man/man1: a manual page for kafkapy and for each command, from their definitions.

The wheel installs them to share/man/man1 (pyproject.toml), where man finds the pages of programs on
the PATH; `man -M man kafkapy-topics` shows one from here. Written and checked by scripts/docs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from dev.report import ROOT
from kafkapy.cli.framework.command import Command, commands
from kafkapy.cli.framework.command_table import COMMANDS
from kafkapy.cli.framework.drop_in_names import DROP_IN
from kafkapy.cli.framework.jopt import OptionSpec

DIRECTORY: Final = ROOT / "man" / "man1"
NOTE: Final = ".\\\" Written by scripts/docs from the commands' definitions: do not edit."


def pages() -> dict[str, str]:
    """The text of each page, by its file's name."""
    found = {"kafkapy.1": root_page()}
    for name, command in commands().items():
        alias = command.name != name
        text = f".so man1/kafkapy-{command.name}.1\n" if alias else page(command)
        found[f"kafkapy-{name}.1"] = text
    return found


def page(command: Command[Any]) -> str:
    """The page of one command."""
    name = command.name
    lines = [*_head(f"kafkapy-{name}", COMMANDS[name])]
    lines += [".SH SYNOPSIS", f".B {_text(f'kafkapy {name}')}", "[\\fIOPTION\\fR ...]"]
    operand = command.operand()
    if operand is not None:
        lines.append(f"\\fI{_text(operand.metavar)}\\fR")
    lines += [".SH DESCRIPTION", _sentence(command.help)]
    if operand is not None:
        lines += [".TP", f"\\fI{_text(operand.metavar)}\\fR", _sentence(operand.help)]
    if scripts := [each for each, words in DROP_IN.items() if words[0] == name]:
        lines += [".PP", _sentence(f"Apache Kafka's name of it: {', '.join(scripts)}.")]
    lines += [".SH EXAMPLES"]
    for about, example in command.example_lines():
        lines += [".PP", _sentence(about), ".RS 4", f"\\fB{_text(example)}\\fR", ".RE"]
    lines += [".SH OPTIONS"]
    for heading, specs in command.sections().items():
        lines += [f'.SS "{_text(heading)}"', *_options(specs)]
    if command.refused:
        lines += [".SH NOT SERVED", "Options of Apache Kafka's tool that are refused."]
        for flag, why in command.refused.items():
            dashes = "-" if len(flag) == 1 else "--"
            lines += [".TP", f"\\fB{_text(dashes + flag)}\\fR", _sentence(f"{why}.")]
    lines += [".SH EXIT STATUS", *_items(_statuses(command)), ".SH SEE ALSO", ".BR kafkapy (1)"]
    return "\n".join(lines) + "\n"


def _statuses(command: Command[Any]) -> Iterator[tuple[str, str]]:
    done = "All was done."
    if command.reported_failures:
        done = f"All was done, or {command.reported_failures}."
        if has_strict(command):
            done += " With --strict, the status is 1."
    yield "0", done
    yield "1", "Wrong usage, a refusal, a lost connection: the line on stderr says which."
    yield "130", "Interrupted by Ctrl-C."


def has_strict(command: Command[Any]) -> bool:
    """Whether the command has `--strict`: then reported failures can have the status 1."""
    return any(spec.names[0] == "strict" for spec in command.specs())


def root_page() -> str:
    """The page of kafkapy itself, with the list of commands."""
    lines = [*_head("kafkapy", "Kafka for Python: brokers and operations tools")]
    lines += [".SH SYNOPSIS", ".B kafkapy", "\\fICOMMAND\\fR [\\fIOPTION\\fR ...]"]
    lines += [".SH DESCRIPTION"]
    lines.append(
        "Brokers that speak Kafka's protocol, and the tools to run them; the tools work with Apache"
        " Kafka's\nclusters too, with the options and the text of the scripts in its bin directory."
    )
    lines += [".SH COMMANDS", *_items(COMMANDS.items())]
    lines += [".SH OPTIONS"]
    lines += _items([("--help, -h", "Show the commands."), ("--version", "Print the version.")])
    lines += [".SH SEE ALSO"]
    names = sorted(f"kafkapy-{name}" for name in COMMANDS)
    lines += [f".BR {_text(name)} (1){',' * (name != names[-1])}" for name in names]
    return "\n".join(lines) + "\n"


def _head(name: str, about: str) -> Iterator[str]:
    yield NOTE
    yield f'.TH {_text(name.upper())} 1 "" kafkapy "kafkapy manual"'
    yield ".SH NAME"
    yield f"{_text(name)} \\- {_text(about.rstrip('.'))}"


def _options(specs: Iterable[OptionSpec]) -> Iterator[str]:
    for spec in specs:
        names = [f"-{name}" if len(name) == 1 else f"--{name}" for name in spec.names]
        shown = ", ".join(f"\\fB{_text(name)}\\fR" for name in names)
        value = f" \\fI{_text(spec.metavar)}\\fR" if spec.metavar else ""
        yield ".TP"
        yield shown + (f" [{value.strip()}]" if spec.optional_value is not None else value)
        yield _sentence(" ".join([spec.help, *remarks(spec)]))


def remarks(spec: OptionSpec) -> Iterator[str]:
    """Sentences on choices, default and repetition, which an option's help does not contain."""
    if spec.choices and not set(spec.choices) <= set(spec.metavar.split("|")):
        yield f"One of {', '.join(spec.choices)}."
    if spec.default:
        yield f"Default: {spec.default}."
    if spec.optional_value:
        yield f"Alone it stands for {spec.optional_value}."
    if spec.repeatable:
        yield "It takes several words." if spec.many else "It may be repeated."


def _items(items: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, about in items:
        yield from (".TP", f"\\fB{_text(name)}\\fR", _sentence(about))


def _sentence(text: str) -> str:
    """A line of running text; escaped if it starts like a roff request."""
    escaped = _text(text)
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def _text(text: str) -> str:
    """Text with backslashes and minus signs escaped."""
    return text.replace("\\", "\\e").replace("-", "\\-")
