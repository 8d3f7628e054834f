"""The definition of a command: its options, its help and its function.

The options are the fields of a dataclass. `jopt` parses every command line with them; help,
completions, manual pages and docs/reference are generated from them.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from kafkapy.cli.framework.command_table import COMMANDS, module_of
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.jopt import OptionSpec, parse, value_of
from kafkapy.cli.framework.options import SPEC, CommonOptions, option_name
from kafkapy.common.errors import KafkapyError

OptionsT = TypeVar("OptionsT", bound=CommonOptions)

# The first and the last heading in the help of every command, and the options under them.
CONNECTION: Final = ("Connection", ("bootstrap-server", "command-config"))
OUTPUT: Final = ("Output", ("output", "debug", "version", "help"))
# With one of these, all other options are ignored, as in Kafka's tools.
_EXCLUSIVE_OPTIONS: Final = ("version", "help")
_LAST_OPTIONS: Final = ("output", "debug", "version")

EXAMPLE_SERVERS: Final = "--bootstrap-server localhost:9092"


@dataclass(eq=False)
class Command(Generic[OptionsT]):
    """One command of `kafkapy`.

    `run` gets the options and the environment and returns the exit status. `help` is one sentence;
    by default, the sentence in the table of commands. `failure` is the format of errors that `run`
    raises; `{words}` in it stands for the command line, each word as `shown_word` returns it.
    `reported_failures` is a clause for the documentation: failures with exit status 0, as in Kafka.
    `operands` names the field for words that are not options; with `verbatim`, all words from the
    first operand on are operands. `bare` allows a command line without words. `refused` maps
    options of Kafka's tool that are not supported to the reason. With `foreign_flags`, unknown
    options belong to another program; the function returns its options without a value.
    `as_argparse` is for the tools that Kafka parses with argparse4j. `groups` maps headings of the
    help to the names of their options. `examples` maps a sentence to the words of a command line
    after the command. `{B}` in them stands for `--bootstrap-server localhost:9092`.
    """

    name: str
    options: type[OptionsT]
    run: Callable[[OptionsT, Environment], ExitStatus]
    help: str = ""
    failure: str = "{}"
    shown_word: Callable[[str], str] = str
    reported_failures: str = ""
    operands: str | None = None
    bare: bool = False
    verbatim: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    foreign_flags: Callable[[], Collection[str]] | None = None
    as_argparse: bool = False
    groups: Mapping[str, str] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.help = self.help or COMMANDS[self.name]

    def specs(self) -> list[OptionSpec]:
        """All options; `output`, `debug` and `version` come last."""
        fields = dataclasses.fields(self.options)
        specs = [_spec(each) for each in fields if each.name != self.operands]
        return sorted(specs, key=lambda spec: spec.field in _LAST_OPTIONS)

    def sections(self) -> dict[str, list[OptionSpec]]:
        """The options under each heading, in the order of the help."""
        by_name = {spec.names[0]: spec for spec in self.specs()}
        found: dict[str, list[OptionSpec]] = {CONNECTION[0]: []}
        groups = [(heading, tuple(names.split())) for heading, names in self.groups.items()]
        grouped = {name for _, names in (CONNECTION, *groups, OUTPUT) for name in names}
        others = ("Options", tuple(name for name in by_name if name not in grouped))
        for heading, names in (CONNECTION, *groups, others, OUTPUT):
            specs = [by_name[name] for name in names if name in by_name]
            found.setdefault(heading, []).extend(specs)
        return {heading: specs for heading, specs in found.items() if specs}

    def example_lines(self) -> list[tuple[str, str]]:
        """Each example: its sentence, and its whole command line."""
        return [
            (about, f"kafkapy {self.name} {words}".rstrip().replace("{B}", EXAMPLE_SERVERS))
            for about, words in self.examples.items()
        ]

    def operand_choices(self) -> tuple[str, ...]:
        """The words that are allowed as first operand; empty if any word is."""
        operand = self.operand()
        return () if operand is None else operand.choices

    def operand(self) -> OptionSpec | None:
        """The declaration of the operands; None if the command has none."""
        fields = dataclasses.fields(self.options)
        return next((_spec(each) for each in fields if each.name == self.operands), None)

    def read(self, words: Sequence[str]) -> OptionsT:
        """Parse words as options; with --version or --help, only those.

        Raises:
            UsageError: an option is wrong, with jopt's text; or words are required.
        """
        if not words and not self.bare:
            raise UsageError(f"{self.name} needs options: {self.help}")
        specs = {spec.names[0]: spec for spec in self.specs()}
        found = parse(
            words,
            specs.values(),
            verbatim=self.verbatim,
            refused=self.refused,
            foreign_flags=self.foreign_flags and self.foreign_flags(),
            as_argparse=self.as_argparse,
        )
        exclusive: dict[str, list[str]] = {
            name: [] for name in _EXCLUSIVE_OPTIONS if name in found.values
        }
        given = exclusive or found.values
        values = {specs[name].field: value_of(specs[name], given[name]) for name in given}
        if self.operands is not None:
            values[self.operands] = found.operands
        return self.options(**values)

    def execute(self, options: OptionsT, env: Environment, words: Sequence[str]) -> int:
        """Run the command, and format its errors with `failure`. Returns the exit status.

        `words` are those of the command line.

        Raises:
            KafkapyError: the command failed.
        """
        env.debug = env.debug or options.debug
        try:
            return self.run(options, env)
        except (CommandFailed, UsageError):
            raise
        except KafkapyError as error:
            shown = " ".join(map(self.shown_word, words))
            raise CommandFailed(self.failure.format(error, words=shown)) from error


def _spec(field: dataclasses.Field[Any]) -> OptionSpec:
    """The option of a field: its declaration, with the name and the type of the field."""
    declared: OptionSpec = field.metadata[SPEC]
    name, *letters = declared.names
    return declared._replace(
        names=(name or option_name(field.name), *letters),
        # The annotation as text: to evaluate all of them would take longer than to parse.
        kind=str(field.type).removesuffix(" | None"),
        field=field.name,
    )


def load(name: str) -> Command[Any]:
    """Import the module of a command in COMMANDS, and return the command."""
    command: Command[Any] = importlib.import_module(module_of(name)).COMMAND
    return command


def commands() -> dict[str, Command[Any]]:
    """All commands by name. Imports every module; used to generate text about all commands."""
    return {name: load(name) for name in COMMANDS}
