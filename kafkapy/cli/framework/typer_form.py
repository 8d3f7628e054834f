"""The commands as Typer's: help, versions, and the words for a command line that has a fault.

Typer builds the parser, the help and the type conversion from the option dataclass; `jopt`
translates Kafka's dialect first. Typer's rich help is off: importing rich takes even longer.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from kafkapy import __version__
from kafkapy.cli.framework.command import Command, default_of, option_name
from kafkapy.cli.framework.command_table import COMMANDS, GROUPS, load
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import HELP

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class LazyGroup(TyperGroup):
    """The root: knows every command's name and help, imports the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return typer_command(load(cmd_name)) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command.

        Raises:
            UsageError: there is no such command; names the nearest.
        """
        if args[0] in COMMANDS:
            return super().resolve_command(ctx, args)
        near = difflib.get_close_matches(args[0], COMMANDS, n=1)
        raise UsageError(
            f"{args[0]} is not a kafkapy command" + (f"; did you mean {near[0]}?" if near else "")
        )

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, names in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names])


class KafkaCommand(TyperCommand):
    """A Typer command that reads Kafka's dialect, and shows its options by what they are for."""

    command: Command[Any]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write examples, the words that are no options, and the options under their headings."""
        params = self.get_params(ctx)
        rows = {name: each.get_help_record(ctx) for each in params for name in each.opts}
        with formatter.section("Examples"):
            for index, (about, line) in enumerate(self.command.example_lines()):
                formatter.write("\n" if index else "")
                formatter.write_text(about)
                formatter.write(folded(line, formatter.width, formatter.current_indent + 2))
        if self.command.operands is not None:
            with formatter.section("Words"):
                formatter.write_dl([rows[self.command.operands]])
        for heading, specs in self.command.sections().items():
            shown = [rows[f"--{spec.names[0]}"] for spec in specs]
            with formatter.section(heading):
                formatter.write_dl([row for row in shown if row is not None])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Translate the words, answer `--version`, and hand the rest to Typer."""
        words = self.command.normalised(args)
        ctx.meta["words"] = tuple(args)
        env: Environment = ctx.obj
        own = set(takewhile(lambda word: word != "--", words))
        env.debug = env.debug or "--debug" in own
        if "--version" in own:
            env.line(__version__)
            ctx.exit(ExitStatus.SUCCESS)
        return super().parse_args(ctx, words)


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Kafka for Python people: a broker, the ops toolbox, and topics as Spark tables."""
    env: Environment = ctx.obj
    if version:
        env.line(__version__)
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        env.line(ctx.get_help())


def run(words: Sequence[str], env: Environment) -> int:
    """Run a command line by Typer; the exit status.

    Raises:
        UsageError: Typer's words for what is wrong with it.
    """
    return call(typer.main.get_command(app), words, env)


def call(command: Any, words: Sequence[str], env: Environment) -> int:
    """Run words by one of Typer's commands. Raises as `run`."""
    try:
        status = command.main(list(words), prog_name="kafkapy", standalone_mode=False, obj=env)
    except typer.BadParameter.__base__ as error:  # type: ignore[misc]
        raise UsageError(error.format_message()) from error
    return int(status or ExitStatus.SUCCESS)


def typer_command(command: Command[Any]) -> Any:
    """Build the Typer command of a command's declaration."""

    def callback(ctx: typer.Context, **values: Any) -> None:
        given = {name: value for name, value in values.items() if value is not None}
        status = command.execute(command.options(**given), ctx.obj, ctx.meta["words"])
        if status != ExitStatus.SUCCESS:
            raise typer.Exit(status)

    hints = get_type_hints(command.options)
    callback.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
            *(_parameter(command, each, hints[each.name]) for each in command.fields()),
        ]
    )
    callback.__annotations__ = {}
    made = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    parser = type("Parser", (KafkaCommand,), {"command": command})
    made.command(command.name, cls=parser, help=command.help, context_settings=_SETTINGS)(callback)
    return typer.main.get_command(made)


def folded(line: str, width: int, indent: int) -> str:
    """A command line as a shell takes it, in lines of at most `width` where its words allow."""
    lines, margin = [""], " " * indent
    for words in line.split(" --"):
        piece = f" --{words}" if lines[-1] else words
        if lines[-1] and indent + len(lines[-1] + piece) + len(" \\") > width:
            lines.append("   ")
        lines[-1] += piece
    return " \\\n".join(margin + each for each in lines) + "\n"


def _parameter(
    command: Command[Any], field: dataclasses.Field[Any], hint: Any
) -> inspect.Parameter:
    details = field.metadata
    default = default_of(field)
    info: Any
    if field.name == command.operands:
        info = typer.Argument(default, help=details[HELP], metavar=details.get("metavar"))
    else:
        info = typer.Option(
            default,
            "--" + option_name(field),
            *(f"-{each}" for each in details.get("short", "")),
            help=details[HELP],
            metavar=details.get("metavar"),
            hidden=details.get("hidden", False),
            show_default=default not in (None, False),
        )
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=hint
    )
