"""The dialect of Kafka's tools (jopt-simple 5), turned into plain `--name=value` words.

What Typer does not know and runbooks use: `-bootstrap-server`, options whose value may be left out,
words that are no options and are ignored, and jopt's own error texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kafkapy.cli.framework.exit_status import UsageError

# Patterns, compiled by whoever uses one first: most starts of a command use none.
_NUMBER: Final = r"-\d+(\.\d+)?"
_INTEGER: Final = r"[+-]?\d+"


class OptionSpec(NamedTuple):
    """The spelling of one option. `names` have no dashes."""

    names: tuple[str, ...]
    takes_value: bool
    repeatable: bool = False
    integer: bool = False
    optional_value: str | None = None
    """The value taken when the option stands alone."""
    stands_for: str | None = None
    """The option, given an empty value, that this flag abbreviates."""
    many: bool = False
    """Takes all words up to the next option (argparse4j's `nargs("+")`)."""
    help: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    default: str = ""
    """What is taken without the option, where that can be said in a word."""


class _Scan:
    def __init__(self) -> None:
        self.words: list[str] = []
        self.seen: set[str] = set()


def normalise(
    words: Sequence[str],
    specs: Sequence[OptionSpec],
    *,
    operands: bool = False,
    verbatim: bool = False,
    refused: Mapping[str, str] | None = None,
) -> list[str]:
    """The words as `--name=value` and `--flag`; other words are dropped, or kept if `operands`.
    With `verbatim`, all from the first such word on are kept as they are. `refused` says by name
    why options that Kafka's tool has are not served.

    Raises:
        UsageError: in jopt's words, naming the option.
    """
    by_name = {name: spec for spec in specs for name in spec.names}
    scan, rest = _Scan(), list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            scan.words += ["--", *rest] if operands else []
            break
        if verbatim and not _looks_like_option(word):
            scan.words += ["--", word, *rest]
            break
        if not _looks_like_option(word):
            scan.words += [word] if operands else []
            continue
        name, equals, value = word.lstrip("-").partition("=")
        spec = by_name.get(name)
        if spec is None and refused and name in refused:
            raise UsageError(f"{word.partition('=')[0]} is not served: {refused[name]}")
        if spec is None:
            raise UsageError(f"{name} is not a recognized option")
        _take(scan, spec, name, value if equals else None, rest)
    return scan.words


def _take(scan: _Scan, spec: OptionSpec, name: str, value: str | None, rest: list[str]) -> None:
    """Add one option, with its value from the word itself or from the next one."""
    primary = spec.names[0]
    if not spec.takes_value:
        scan.words.append(f"--{spec.stands_for}=" if spec.stands_for else f"--{primary}")
        return
    if value is None and spec.optional_value is not None:
        alone = not rest or _looks_like_option(rest[0])
        value = spec.optional_value if alone else rest.pop(0)
    elif value is None:
        if not rest:
            raise UsageError(f"Option {name} requires an argument")
        value = rest.pop(0)
    if spec.integer and not re.fullmatch(_INTEGER, value):
        raise UsageError(f"Cannot parse argument '{value}' of option {name}")
    if primary in scan.seen and not spec.repeatable:
        raise UsageError(f"Found multiple arguments for option {name}, but you asked for only one")
    scan.seen.add(primary)
    scan.words.append(f"--{primary}={value}")
    while spec.many and rest and not _looks_like_option(rest[0]):
        scan.words.append(f"--{primary}={rest.pop(0)}")


def _looks_like_option(word: str) -> bool:
    if len(word) < 2 or word[0] != "-":
        return False
    return not (word[1].isdigit() and re.fullmatch(_NUMBER, word))
