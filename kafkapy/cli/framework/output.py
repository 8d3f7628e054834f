"""Writes results as Kafka's text for scripts, tables for people, or JSON for programs.

The JSON is one line, with the same envelope for every command:

    {"kafkapy": 1, "command": "topics", "data": [...]}

`kafkapy` is the version of the envelope. It changes if programs that read it must change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.cli.framework.environment import Environment, visible
from kafkapy.cli.framework.options import OutputFormat

if TYPE_CHECKING:
    from rich.text import Text

    from kafkapy.common.errors import ApiError

ENVELOPE_VERSION: Final = 1

# A cell with exactly one of these words shows a problem, and is red.
_PROBLEM_WORDS: Final = frozenset({"none", "under-replicated", "offline", "ERROR"})


class Table(NamedTuple):
    """A table for people."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    title: str | None = None


class Report(NamedTuple):
    """One result in its three forms. Without tables, the text is shown instead."""

    command: str
    data: Sequence[Any]
    text: Iterable[str]
    tables: Sequence[Table] = ()


def show(env: Environment, report: Report, chosen: OutputFormat | None) -> None:
    """Write a report in the chosen form; by default, tables on a terminal and text otherwise."""
    form = chosen or (OutputFormat.table if env.on_terminal else OutputFormat.text)
    if form is OutputFormat.json:
        env.line(to_json(report.command, report.data))
    elif form is OutputFormat.table and report.tables:
        _print_tables(env, report.tables)
    else:
        for line in report.text:
            env.line(line)


def line_printer(env: Environment, chosen: OutputFormat | None) -> Callable[[str], None]:
    """A function that prints a line beside the report: on stdout, as Kafka's tools, or on stderr if
    stdout must contain only JSON.
    """
    return env.warn if chosen is OutputFormat.json else env.line


def to_json(command: str, data: Sequence[Any]) -> str:
    """The envelope as one line."""
    import json

    envelope = {"kafkapy": ENVELOPE_VERSION, "command": command, "data": data}
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))


def number_json(number: float) -> float | None:
    """A number in a row of data; null for those that JSON does not have, such as the average of
    nothing.
    """
    return number if math.isfinite(number) else None


def error_json(error: ApiError | None) -> dict[str, str | None]:
    """An error as fields of a row of data. Both fields are null for None."""
    return {
        "error": None if error is None else error.code.name,
        "message": None if error is None else error.message,
    }


def _print_tables(env: Environment, tables: Sequence[Table]) -> None:
    """Show tables with rich. Its import, only here, takes longer than most commands."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(file=env.stdout, highlight=False)
    for table in tables:
        # A column takes 4 characters, one of them of a cell. Rich leaves out columns without room.
        if console.width < 4 * len(table.columns) + 1:
            _print_cells(env, table)
            continue
        shown = RichTable(
            title=None if table.title is None else _text(table.title),
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
        )
        for index, column in enumerate(table.columns):
            cells = [row[index] for row in table.rows]
            numbers = bool(cells) and all(isinstance(cell, int) for cell in cells)
            shown.add_column(column, justify="right" if numbers else "left", overflow="fold")
        for row in table.rows:
            shown.add_row(*(_cell(value) for value in row))
        console.print(shown)


def _print_cells(env: Environment, table: Table) -> None:
    """Show a table that is too wide for the terminal as lines, one for each cell."""
    for row in table.rows:
        env.line("" if table.title is None else visible(table.title))
        for column, value in zip(table.columns, row, strict=True):
            env.line(f"{column}: {visible(str(value))}")


def _cell(value: object) -> Text:
    text = str(value)
    return _text(text, "bold red" if text in _PROBLEM_WORDS else "")


def _text(text: str, style: str = "") -> Text:
    """A text without markup: it may be a name that a client chose."""
    from rich.text import Text

    return Text(visible(text), style=style)
