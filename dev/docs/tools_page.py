"""Every tool and flag of Apache Kafka 3.9 beside ours: the tables of docs/reference/tools.md.

Kafka's side is tests/data/tools/kafka-flags.json (`scripts/conformance --record-flags`). Ours is
the table of commands, found through the drop-in names in scripts/bin. Words that we do not take
need a reason in tests/data/tools/not-served.toml; an unneeded reason is a complaint too.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dev.conformance.record_flags import FLAGS, shell_commands_in
from dev.report import ROOT, table
from kafkapy.cli.commands.zookeeper_shell import TLS_OPTION
from kafkapy.cli.framework.command import Command, commands
from kafkapy.cli.framework.drop_in_names import DROP_IN
from kafkapy.cli.framework.jopt import OptionSpec
from kafkapy.tools.zookeeper import shell as zookeeper_shell

REASONS: Final = FLAGS.parent / "not-served.toml"
BIN: Final = ROOT / "scripts" / "bin"
COMMON: Final = frozenset({"--output", "--debug", "--version", "--help"})

_CLASS: Final = re.compile(r"^  [\w.*]*\.(\w+)\*?\) command=([\w-]+)", re.MULTILINE)


@dataclass(frozen=True)
class Reasons:
    """Reasons why whole scripts, or words of scripts that we have, are not served."""

    scripts: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    in_part: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Words that are served only in part, with the difference from Kafka's."""


@dataclass(frozen=True)
class Tool:
    """One script of Kafka's: its words and flags, our command, and the words that it takes.

    `command` is None where we have none, and "" where the script itself finds it.
    """

    script: str
    theirs: tuple[str, ...]
    command: str | None = None
    ours: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    """The reasons, by flag that the command knows and refuses."""

    def taken(self) -> list[str]:
        return [word for word in self.theirs if word in self.ours]

    def missing(self) -> list[str]:
        return [word for word in self.theirs if word not in self.ours]

    def added(self) -> list[str]:
        """Flags that Kafka's tool does not have, except those of every kafkapy command."""
        known = {word.lstrip("-") for word in self.theirs}
        mine = {word for word in self.ours - COMMON if re.match("--..", word)}
        return sorted(word for word in mine if word[2:] not in known)


def theirs(parts: Iterable[Mapping[str, Any]], *, by_verb: bool = False) -> tuple[str, ...]:
    """The words and flags of a script, each once; with `by_verb`, flags follow their word."""
    found: dict[str, None] = {}
    for part in parts:
        prefix = " ".join(part["words"])
        found |= dict.fromkeys([prefix] if prefix else [])
        head = f"{prefix} " if by_verb and prefix else ""
        found |= {head + name: None for names in part["flags"] for name in names}
    return tuple(found)


def ours(command: Command[Any], verb: str = "") -> frozenset[str]:
    """The words that a command or one of its verbs takes; flags with one dash and with two."""
    verbs = command.operand_choices()
    flags = {
        dashes + name
        for spec in command.specs()
        for name in spec.names
        for dashes in ("-", "--")
        if not verb or verb in (of := verbs_of(spec, verbs)) or not of
    }
    return frozenset({*flags, *(() if verb else verbs)})


def verbs_of(spec: OptionSpec, verbs: Sequence[str]) -> list[str]:
    """The verbs that have a flag, from the start of its help (`start, stop: ...`); [] if all."""
    head = spec.help.partition(":")[0].split(", ")
    return [word for word in head if word in verbs]


def refused_by(command: Command[Any]) -> dict[str, str]:
    """Reasons for refusals, by the flag as Kafka's help writes it."""
    return {("-" if len(name) == 1 else "--") + name: why for name, why in command.refused.items()}


def ours_in_the_shell() -> frozenset[str]:
    """Commands and flags that `kafkapy zookeeper-shell` accepts."""
    found = shell_commands_in("\n".join(f"\t{usage}" for usage in zookeeper_shell.HELP))
    words = {f"{name} {each}" for name, *names in found for each in names}
    return frozenset({TLS_OPTION, *words, *(name for name, *_ in found)})


def our_command(script: str) -> str | None:
    """The command behind a drop-in name; None where there is none, "" where the script finds it."""
    name, _, java_class = script.partition(" ")
    if java_class:
        classes = dict(_CLASS.findall((BIN / name).read_text()))
        return classes.get(java_class.rpartition(".")[2])
    words = DROP_IN.get(name)
    if words is None:
        return "" if (BIN / name).exists() else None
    return " ".join(words)


def in_the_script(script: str) -> frozenset[str]:
    """Flags that the drop-in script parses before it runs our command: its `case` labels."""
    path = BIN / script.split(" ")[0]
    return frozenset(re.findall(r"^ *(-\w+)\)", path.read_text(), re.MULTILINE))


def tools() -> list[Tool]:
    """Every script, Kafka's words beside ours."""
    every = commands()
    found = []
    for script, parts in json.loads(FLAGS.read_text())["scripts"].items():
        name = our_command(script)
        if name is None:
            found.append(Tool(script, theirs(parts)))
        elif name == "zookeeper-shell":
            found.append(Tool(script, theirs(parts, by_verb=True), name, ours_in_the_shell()))
        else:
            found.append(_tool(script, theirs(parts), name, every))
    return found


def _tool(
    script: str, words: tuple[str, ...], name: str, every: Mapping[str, Command[Any]]
) -> Tool:
    """`name` is a command, perhaps with its verb, or "" where the script finds it."""
    taken, refused = in_the_script(script), {}
    if name:
        command, _, verb = name.partition(" ")
        taken |= ours(every[command], verb)
        refused = refused_by(every[command])
    return Tool(script, words, name, taken, refused)


def read_reasons() -> Reasons:
    data = tomllib.loads(REASONS.read_text())
    return Reasons(data["scripts"], data["words"], data["in-part"])


def complaints(every: Sequence[Tool], reasons: Reasons) -> list[str]:
    """Missing words that have no reason, and reasons for words that are not missing."""
    needed: set[tuple[str, str]] = set()
    for tool in every:
        words = [""] if tool.command is None else set(tool.missing()) - tool.refused.keys()
        needed |= {(tool.script, word) for word in words}
    taken = {(tool.script, word) for tool in every for word in tool.taken()}
    partly = {(script, word) for script, words in reasons.in_part.items() for word in words}
    given = {(script, "") for script in reasons.scripts}
    given |= {(script, word) for script, words in reasons.words.items() for word in words}
    return [
        *(f"no reason for {' '.join(each)}".strip() for each in sorted(needed - given)),
        *(f"a reason for {' '.join(each).strip()}: served" for each in sorted(given - needed)),
        *(f"in part, {' '.join(each)}: not taken" for each in sorted(partly - taken)),
    ]


def page() -> str:
    """The generated part of docs/reference/tools.md.

    Raises:
        SystemExit: something is missing without a reason.
    """
    every, reasons = tools(), read_reasons()
    if wrong := complaints(every, reasons):
        raise SystemExit("\n".join([f"{REASONS.relative_to(ROOT)}:", *wrong]))
    rows = [_overview(tool) for tool in every]
    head = ["Apache Kafka", "kafkapy", "words and flags", "taken"]
    served = [tool for tool in every if tool.command is not None]
    parts = [
        table(head, rows),
        *(_section(tool, reasons) for tool in served),
    ]
    left = [
        [f"`{tool.script}`", reasons.scripts[tool.script], _listed(tool.theirs)]
        for tool in every
        if tool.command is None
    ]
    parts.append(
        "## Not served\n\n" + table(["Apache Kafka", "why not", "its words and flags"], left)
    )
    return "\n\n".join(parts)


def _overview(tool: Tool) -> list[object]:
    ours = (
        "-"
        if tool.command is None
        else f"`kafkapy {tool.command}`"
        if tool.command
        else "by its class"
    )
    taken = len(tool.taken()) if tool.command is not None else 0
    return [f"`{tool.script}`", ours, len(tool.theirs), taken]


def _section(tool: Tool, reasons: Reasons) -> str:
    text = [f"## {tool.script}" + (f": `kafkapy {tool.command}`" if tool.command else "")]
    text.append(f"Taken: {_listed(tool.taken())}." if tool.theirs else "It has no flags.")
    why = {**reasons.words.get(tool.script, {}), **tool.refused}
    rows = [[f"`{word}`", "no", why[word]] for word in tool.missing()]
    partly = reasons.in_part.get(tool.script, {})
    rows += [[f"`{word}`", "in part", partly[word]] for word in tool.taken() if word in partly]
    if rows:
        text.append(table(["word or flag", "taken", "why"], rows))
    if added := tool.added():
        text.append(f"kafkapy's own: {_listed(added)}.")
    return "\n\n".join(text)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or "none"
