"""The command line as a Typer app, for `typer.testing.CliRunner`.

The app has no options of its own: it passes all words to `command_line`, which parses them.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from kafkapy.cli.framework.command_line import run
from kafkapy.cli.framework.environment import Environment


class UnparsedCommand(TyperCommand):
    """A Typer command that does not parse its words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep all words, including words that look like options."""
        ctx.args = args
        return args


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(cls=UnparsedCommand)
def kafkapy(ctx: typer.Context) -> None:
    """Run a command line; `obj` may be its environment."""
    raise typer.Exit(run(ctx.args, ctx.obj or Environment()))
