"""A command: its options, how its words are read, and what it does.

The option dataclass says what there is; `jopt` turns Kafka's dialect into plain words, and `read`
makes options of them, or leaves that to Typer (`typer_form`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.jopt import OptionSpec, normalise
from kafkapy.cli.framework.options import HELP, CommonOptions, spelled
from kafkapy.common.errors import KafkapyError

OptionsT = TypeVar("OptionsT", bound=CommonOptions)

# The headings that every command has in its help, first and last, and the options under them.
CONNECTION: Final = ("Connection", ("bootstrap-server", "command-config"))
OUTPUT: Final = ("Output", ("output", "debug", "version", "help"))

EXAMPLE_SERVERS: Final = "--bootstrap-server localhost:9092"
HELP_OPTION: Final = OptionSpec(("help", "h"), takes_value=False, help="Show the options.")


@dataclass(eq=False)
class Command(Generic[OptionsT]):
    """One command of `kafkapy`.

    `run` gets the options and the environment and returns the exit status. `failure` frames the
    message of what goes wrong while it runs. `operands` names a field that takes the words that are
    no options; with `verbatim`, all words from the first such one on are its. `bare` says that the
    command does something without any word. `refused` says, by name, why options that Kafka's tool
    has are not served. `groups` are the headings of the help, each with the names of its options;
    `examples` say what a command line does, and give its words after the command. `{B}` in them
    stands for `--bootstrap-server localhost:9092`.
    """

    name: str
    options: type[OptionsT]
    run: Callable[[OptionsT, Environment], ExitStatus]
    help: str
    failure: str = "{}"
    operands: str | None = None
    bare: bool = False
    verbatim: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)

    def specs(self) -> list[OptionSpec]:
        """Every option, as `jopt` needs it."""
        return [HELP_OPTION, *(_spec(f) for f in self.fields() if f.name != self.operands)]

    def sections(self) -> dict[str, list[OptionSpec]]:
        """Every option by its name under its heading, in the order of the help."""
        of_name = {spec.names[0]: spec for spec in self.specs()}
        found: dict[str, list[OptionSpec]] = {CONNECTION[0]: []}
        groups = [(heading, tuple(names.split())) for heading, names in self.groups.items()]
        grouped = {name for _, names in (CONNECTION, *groups, OUTPUT) for name in names}
        others = ("Options", tuple(name for name in of_name if name not in grouped))
        for heading, names in (CONNECTION, *groups, others, OUTPUT):
            specs = [of_name[name] for name in names if name in of_name]
            found.setdefault(heading, []).extend(specs)
        return {heading: specs for heading, specs in found.items() if specs}

    def example_lines(self) -> list[tuple[str, str]]:
        """Each example: its sentence, and its whole command line."""
        return [
            (about, f"kafkapy {self.name} {words}".rstrip().replace("{B}", EXAMPLE_SERVERS))
            for about, words in self.examples.items()
        ]

    def operand_choices(self) -> tuple[str, ...]:
        """The words that the first operand may be, where they are few."""
        operand = self.operand()
        return () if operand is None else operand.choices

    def operand(self) -> OptionSpec | None:
        """The help of positional arguments; None where there are none."""
        return next((_spec(f) for f in self.fields() if f.name == self.operands), None)

    def fields(self) -> list[dataclasses.Field[Any]]:
        """The fields of the options, those that every command has last."""
        every = dataclasses.fields(self.options)
        return sorted(every, key=lambda each: each.name in _COMMON)

    def arrange(self, words: Sequence[str]) -> Sequence[str]:
        """Sort the words before anything reads them."""
        return words

    def normalised(self, words: Sequence[str]) -> list[str]:
        """The words as `--name=value`, `--name` and operands.

        Raises:
            UsageError: in jopt's words, naming the option; or there are no words.
        """
        if not words and not self.bare:
            raise UsageError(f"{self.name} needs options: {self.help.splitlines()[0]}")
        return normalise(
            self.arrange(words),
            self.specs(),
            operands=self.operands is not None,
            verbatim=self.verbatim,
            refused=self.refused,
        )

    def read(self, words: Sequence[str]) -> OptionsT | None:
        """The options that the words stand for: the same that Typer would make of them. None for
        what only Typer answers: help, versions, and values that are not what they should be.

        Raises:
            UsageError: in jopt's words.
        """
        try:
            options = self.options(**self._values(self.normalised(words)))
        except (KeyError, ValueError):
            return None
        return None if options.version else options

    def _values(self, plain: Sequence[str]) -> dict[str, Any]:
        """Values of the options by field, of words without a fault.

        Raises:
            KeyError, ValueError: there is no such option (as `--help`), or its value is none.
        """
        options = {f"--{option_name(f)}": f for f in self.fields() if f.name != self.operands}
        values: dict[str, Any] = {}
        operands: list[str] = []
        rest = iter(plain)
        for word in rest:
            if word == "--":
                operands += rest
            elif word == "-" or not word.startswith("-"):
                operands.append(word)
            else:
                name, equals, text = word.partition("=")
                option = options[name]
                value = _convert(option, text) if equals else True
                if _is_list(option):
                    values.setdefault(option.name, []).append(value)
                else:
                    values[option.name] = value
        return values if self.operands is None else values | {self.operands: operands}

    def execute(self, options: OptionsT, env: Environment, words: Sequence[str]) -> int:
        """Run, and frame what goes wrong; the exit status. `words` are the command line's.

        Raises:
            KafkapyError: the command failed.
        """
        env.debug = env.debug or options.debug
        try:
            return self.run(options, env)
        except (CommandFailed, UsageError):
            raise
        except KafkapyError as error:
            raise CommandFailed(self.failure.format(error, words=" ".join(words))) from error


_COMMON: Final = frozenset(field.name for field in dataclasses.fields(CommonOptions))


def option_name(field: dataclasses.Field[Any]) -> str:
    """A field's name as an option."""
    return field.metadata.get("name") or spelled(field.name)


def default_of(field: dataclasses.Field[Any]) -> Any:
    """The value of a field without its option; None for an empty list."""
    return None if field.default is dataclasses.MISSING else field.default


def _is_list(field: dataclasses.Field[Any]) -> bool:
    return field.default_factory is not dataclasses.MISSING


def _kind(field: dataclasses.Field[Any]) -> str:
    """The annotation as it is written; to evaluate them all would take longer than to parse."""
    return str(field.type).removesuffix(" | None")


_CONVERTERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "str": str,
    "list[str]": str,
    "int": int,
    "float": float,
}


def _convert(field: dataclasses.Field[Any], text: str) -> Any:
    """The value of an option; that of an enumeration is one of its choices.

    Raises:
        ValueError, KeyError: the text is no such value.
    """
    converter = _CONVERTERS.get(_kind(field))
    if converter is not None:
        return converter(text)
    return {str(choice): choice for choice in field.metadata["choices"]}[text]


def _spec(field: dataclasses.Field[Any]) -> OptionSpec:
    default = default_of(field)
    return OptionSpec(
        (option_name(field), *field.metadata.get("short", "")),
        takes_value=_kind(field) != "bool",
        repeatable=_is_list(field),
        integer=_kind(field) == "int",
        optional_value=field.metadata.get("alone"),
        stands_for=field.metadata.get("stands_for"),
        many=field.metadata.get("many", False),
        help=field.metadata[HELP],
        metavar=field.metadata.get("metavar", ""),
        choices=field.metadata.get("choices", ()),
        default="" if default in (None, False) else str(default),
    )
