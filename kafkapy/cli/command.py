"""A command: its options, what it does, and its Typer form, built only when the command is called.

Typer builds the parser, the help and the type conversion from the option dataclass; `jopt`
translates Kafka's dialect first. Typer's rich help is off: importing rich takes longer than most
commands.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

from kafkapy import __version__
from kafkapy.cli.environment import Environment
from kafkapy.cli.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.jopt import OptionSpec, normalise
from kafkapy.cli.options import HELP, CommonOptions, spelled
from kafkapy.common.errors import KafkapyError

OptionsT = TypeVar("OptionsT", bound=CommonOptions)

HELP_OPTION: Final = OptionSpec(("help", "h"), takes_value=False, help="Show the options.")


@dataclass(frozen=True)
class Command(Generic[OptionsT]):
    """One command of `kafkapy`.

    `run` gets the options and the environment and returns the exit status. `failure` frames the
    message of what goes wrong while it runs. `operands` names a field that takes the words that are
    no options; with `verbatim`, all words from the first such one on are its. `bare` says that the
    command does something without any word. `refused` says, by name, why options that Kafka's tool
    has are not served.
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

    def specs(self) -> list[OptionSpec]:
        """Every option, as `jopt` needs it."""
        return [
            HELP_OPTION,
            *(_spec(f, hint) for f, hint in self._fields() if not self._operand(f)),
        ]

    def operand_choices(self) -> tuple[str, ...]:
        """The words that the first operand may be, where they are few."""
        operand = self.operand()
        return () if operand is None else operand.choices

    def operand(self) -> OptionSpec | None:
        """What is said of the words that are no options; None where there are none."""
        return next((_spec(f, hint) for f, hint in self._fields() if self._operand(f)), None)

    def app(self) -> typer.Typer:
        """The Typer application of this command alone."""

        def callback(ctx: typer.Context, **values: Any) -> None:
            env: Environment = ctx.obj
            options = self.options(**{k: _plain(v, self.options, k) for k, v in values.items()})
            status = self.run(options, env)
            if status != ExitStatus.SUCCESS:
                raise typer.Exit(status)

        self_parameter = inspect.Parameter(
            "ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
        )
        parameters = [self._parameter(field, hint) for field, hint in self._fields()]
        callback.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [self_parameter, *parameters]
        )
        callback.__annotations__ = {}
        parser = type("Parser", (KafkaCommand,), {"command": self})
        app = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
        )
        app.command(
            self.name,
            cls=parser,
            help=self.help,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )(callback)
        return app

    def _fields(self) -> list[tuple[dataclasses.Field[Any], Any]]:
        hints = get_type_hints(self.options)
        own = [f for f in dataclasses.fields(self.options) if f.name not in _COMMON]
        common = [f for f in dataclasses.fields(self.options) if f.name in _COMMON]
        return [(field, hints[field.name]) for field in (*own, *common)]

    def _operand(self, field: dataclasses.Field[Any]) -> bool:
        return field.name == self.operands

    def _parameter(self, field: dataclasses.Field[Any], hint: Any) -> inspect.Parameter:
        details = field.metadata
        default = None if field.default is dataclasses.MISSING else field.default
        info: Any
        if self._operand(field):
            info = typer.Argument(default, help=details[HELP], metavar=details.get("metavar"))
        else:
            info = typer.Option(
                default,
                "--" + _option_name(field),
                *(f"-{each}" for each in details.get("short", "")),
                help=details[HELP],
                metavar=details.get("metavar"),
                hidden=details.get("hidden", False),
                show_default=default not in (None, False),
            )
        return inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=hint
        )


class KafkaCommand(TyperCommand):
    """A Typer command that reads Kafka's dialect and reports failures in the command's words."""

    command: Command[Any]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Translate the words, answer `--version`, and hand the rest to Typer."""
        command = self.command
        if not args and not command.bare:
            raise UsageError(f"{command.name} needs options: {command.help.splitlines()[0]}")
        words = normalise(
            args,
            command.specs(),
            operands=command.operands is not None,
            verbatim=command.verbatim,
            refused=command.refused,
        )
        ctx.meta["words"] = tuple(args)
        env: Environment = ctx.obj
        env.debug = env.debug or "--debug" in words
        if "--version" in words:
            env.line(__version__)
            ctx.exit(ExitStatus.SUCCESS)
        return super().parse_args(ctx, words)

    def invoke(self, ctx: Any) -> Any:
        """Run; frame what goes wrong."""
        try:
            return super().invoke(ctx)
        except (CommandFailed, UsageError):
            raise
        except KafkapyError as error:
            failure = self.command.failure.format(error, words=" ".join(ctx.meta["words"]))
            raise CommandFailed(failure) from error


_COMMON: Final = frozenset(field.name for field in dataclasses.fields(CommonOptions))


def _option_name(field: dataclasses.Field[Any]) -> str:
    return field.metadata.get("name") or spelled(field.name)


def _spec(field: dataclasses.Field[Any], hint: Any) -> OptionSpec:
    return OptionSpec(
        (_option_name(field), *field.metadata.get("short", "")),
        takes_value=hint is not bool,
        repeatable=field.default_factory is not dataclasses.MISSING,
        integer=hint in (int, int | None),
        optional_value=field.metadata.get("alone"),
        stands_for=field.metadata.get("stands_for"),
        many=field.metadata.get("many", False),
        help=field.metadata[HELP],
        metavar=field.metadata.get("metavar", ""),
        choices=field.metadata.get("choices", ()),
        default=_default(field),
    )


def _default(field: dataclasses.Field[Any]) -> str:
    known = field.default not in (None, False, dataclasses.MISSING)
    return str(field.default) if known else ""


def _plain(given: Any, options: type[Any], name: str) -> Any:
    """Typer's None for a repeatable option that is not there is an empty list for us."""
    if given is None and dataclasses.MISSING is not _field(options, name).default_factory:
        return []
    return given


def _field(options: type[Any], name: str) -> dataclasses.Field[Any]:
    return next(field for field in dataclasses.fields(options) if field.name == name)
