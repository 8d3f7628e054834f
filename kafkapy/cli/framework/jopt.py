"""Parses command lines by the rules of Kafka's tools (jopt-simple 5, or argparse4j for some).

The rules of jopt allow `-bootstrap-server`, options with an optional value, and words that are not
options and are ignored. Error texts are jopt's. As in jopt, `parse` finds all options before
`value_of` converts a value. argparse4j also takes the beginning of an option's name, the value of
`-b` in the same word, and the last value of an option that is given twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafkapy.cli.framework.exit_status import UsageError
from kafkapy.common.texts import is_utf8

# Patterns are compiled on first use: most runs of a command use none.
_NUMBER: Final = r"-\d+(\.\d+)?"
_INTEGER: Final = r"[+-]?\d+"
# The metavars of paths contain one of these. Paths may have any bytes.
_PATHS: Final = ("FILE", "DIR")


class OptionSpec(NamedTuple):
    """One option: its names, its meaning and its help. `names` have no dashes.

    `field` is the name of its field, `kind` the annotation of the field as text.
    """

    names: tuple[str, ...]
    kind: str = "str"
    field: str = ""
    optional_value: str | None = None
    """The value of the option if it is given without one."""
    stands_for: str | None = None
    """The option for which this flag is an abbreviation; its value is then empty."""
    many: bool = False
    """Takes all words up to the next option (argparse4j's `nargs("+")`)."""
    help: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    default: str = ""
    """The default value for the help text, if it is one word."""
    bits: int = 64
    """The size of an integer value."""
    actions: tuple[str, ...] = ()
    """The actions of the command that use the option; empty: all."""

    @property
    def takes_value(self) -> bool:
        """Whether the option has a value; a flag has none."""
        return self.kind != "bool"

    @property
    def repeatable(self) -> bool:
        """Whether the option may be given more than once."""
        return self.kind.startswith("list")


class OptionSet(NamedTuple):
    """Options of a command line by name, each with its values as text, and the words that are not
    options. A flag has no value."""

    values: dict[str, list[str]]
    operands: list[str]


def parse(
    words: Sequence[str],
    specs: Iterable[OptionSpec],
    *,
    verbatim: bool = False,
    refused: Mapping[str, str] | None = None,
    foreign_flags: Collection[str] | None = None,
    as_argparse: bool = False,
) -> OptionSet:
    """Find the options. With `verbatim`, all words from the first operand on are operands.

    `refused` maps options of Kafka's tool that are not supported to the reason. With
    `foreign_flags`, unknown options belong to another program and are operands, each together with
    the next word; options in `foreign_flags` have no value.

    Raises:
        UsageError: an option is wrong; jopt's text with the name of the option.
    """
    by_name = {name: spec for spec in specs for name in spec.names}
    found, rest = OptionSet({}, []), list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            found.operands.extend(rest)
            break
        if not _looks_like_option(word):
            found.operands.append(word)
            if not verbatim:
                continue
            found.operands.extend(rest)
            break
        name, equals, value = word.lstrip("-").partition("=")
        spec = by_name.get(name)
        if spec is None and as_argparse:
            spec, value = _found_by_argparse(word, by_name, value)
            equals = equals or value
        if spec is None and refused and name in refused:
            raise UsageError(f"{word.partition('=')[0]} is not served: {refused[name]}")
        if spec is None and foreign_flags is not None:
            stands_alone = equals or word in foreign_flags or not rest
            found.operands.extend([word] if stands_alone else [word, rest.pop(0)])
            continue
        if spec is None:
            raise UsageError(f"{name} is not a recognized option")
        if as_argparse and (spec.many or not spec.repeatable):
            found.values.pop(spec.names[0], None)
        _add_option(found, spec, name, value if equals else None, rest)
    return found


def _found_by_argparse(
    word: str, by_name: Mapping[str, OptionSpec], value: str
) -> tuple[OptionSpec | None, str]:
    """The option of an abbreviated name, or the one-letter option of a word with its value.

    Raises:
        UsageError: several names begin so.
    """
    if not word.startswith("--"):
        spec = by_name.get(word[1])
        return (spec, word[2:]) if spec is not None and spec.takes_value else (None, value)
    prefix = word[2:].partition("=")[0]
    names = [name for name in by_name if name.startswith(prefix)]
    if len({by_name[name].names[0] for name in names}) > 1:
        matches = ", ".join(f"--{name}" for name in names)
        raise UsageError(f"ambiguous option: --{prefix} could match {matches}")
    return (by_name[names[0]] if names else None), value


def _add_option(
    found: OptionSet, spec: OptionSpec, name: str, value: str | None, rest: list[str]
) -> None:
    """Add one option, with its value from the word itself or from the next word."""
    texts = found.values.setdefault(spec.stands_for or spec.names[0], [])
    if not spec.takes_value:
        texts += [""] if spec.stands_for else []
        return
    if value is None and spec.optional_value is not None:
        stands_alone = not rest or _looks_like_option(rest[0])
        value = spec.optional_value if stands_alone else rest.pop(0)
    elif value is None:
        if not rest:
            raise UsageError(f"Option {name} requires an argument")
        value = rest.pop(0)
    texts.append(value)
    while spec.many and rest and not _looks_like_option(rest[0]):
        texts.append(rest.pop(0))


def value_of(spec: OptionSpec, texts: list[str]) -> Any:
    """The value of an option that was given, in the type of its field.

    Raises:
        UsageError: it was given twice, or its value cannot be parsed; with jopt's text.
    """
    if not spec.takes_value:
        return True
    values = [_converted(spec, text) for text in texts]
    if spec.repeatable:
        return values
    if len(values) > 1:
        raise UsageError(
            f"Found multiple arguments for option {spec.names[0]}, but you asked for only one"
        )
    return values[0]


def require_utf8(text: str, value_name: str) -> None:
    """Check that a word is UTF-8: librdkafka crashes on other bytes.

    Raises:
        UsageError: the command line had bytes that are not UTF-8.
    """
    if not is_utf8(text):
        raise UsageError(f"The {value_name} is not UTF-8: {text!a}")


def _converted(spec: OptionSpec, text: str) -> Any:
    if spec.kind in ("str", "list[str]"):
        if not any(path in spec.metavar for path in _PATHS):
            require_utf8(text, f"argument of option {spec.names[0]}")
        return text
    if spec.kind in ("int", "float"):
        try:
            return _integer(text, spec.bits) if spec.kind == "int" else float(text)
        except ValueError:
            raise UsageError(f"Cannot parse argument '{text}' of option {spec.names[0]}") from None
    # An enumeration, which only kafkapy's own options have: the error lists the allowed values.
    members = {str(choice): choice for choice in spec.choices}
    if text not in members:
        message = f"Invalid value for '--{spec.names[0]}': {text!r}"
        raise UsageError(f"{message} is not one of {', '.join(map(repr, members))}.")
    return members[text]


def _integer(text: str, bits: int) -> int:
    """Parse an integer as Java does. Raises ValueError."""
    limit = 1 << (bits - 1)
    if not re.fullmatch(_INTEGER, text) or not -limit <= int(text) < limit:
        raise ValueError
    return int(text)


def _looks_like_option(word: str) -> bool:
    if len(word) < 2 or word[0] != "-":
        return False
    return not (word[1].isdigit() and re.fullmatch(_NUMBER, word))
