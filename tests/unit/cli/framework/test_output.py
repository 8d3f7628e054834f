"""One result, three forms."""

from __future__ import annotations

import io
import json

import pytest

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.options import OutputFormat
from kafkapy.cli.framework.output import Report, Table, show, to_json

REPORT = Report(
    "x", [{"a": 1, "b": "é"}], ["one", "two"], [Table(("A", "B"), [(1, "none")], "Title")]
)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(report: Report, chosen: OutputFormat | None, out: io.StringIO) -> str:
    show(Environment(stdout=out), report, chosen)
    return out.getvalue()


def test_text_on_a_pipe_table_on_a_terminal() -> None:
    assert shown(REPORT, None, io.StringIO()) == "one\ntwo\n"
    assert "Title" in shown(REPORT, None, Screen())


@pytest.mark.parametrize("out", [io.StringIO, Screen])
def test_what_is_chosen_wins(out: type[io.StringIO]) -> None:
    assert shown(REPORT, OutputFormat.text, out()) == "one\ntwo\n"
    assert "─" in shown(REPORT, OutputFormat.table, out())
    envelope = shown(REPORT, OutputFormat.json, out())
    assert envelope == '{"kafkapy":1,"command":"x","data":[{"a":1,"b":"é"}]}\n'


def test_without_tables_people_get_the_text() -> None:
    assert shown(Report("x", [], ["done"]), None, Screen()) == "done\n"


def test_numbers_are_right_aligned_and_trouble_is_red() -> None:
    table = Table(("Partition", "Leader"), [(1, "ok"), (10, "none")])
    drawn = shown(Report("x", [], [], [table]), OutputFormat.table, Screen())
    assert "         1   " in drawn
    assert "\x1b[1;31mnone" in drawn
    assert "\x1b[1;31mok" not in drawn


def test_a_client_id_in_a_table_cannot_control_an_operators_terminal() -> None:
    """Each client chooses its client id, which `consumer-groups --describe --members` shows."""
    table = Table(("CLIENT-ID",), [("a\x1b]0;owned\x07\x1b[2J",)])
    drawn = shown(Report("x", [], [], [table]), None, Screen())
    assert "\x1b]" not in drawn
    assert "\x1b[2J" not in drawn
    assert r"a\u001b]0;owned\u0007\u001b[2J" in drawn


@pytest.mark.parametrize("name", ["[/x]", "[red]orders[/red]", "[link=http://x]orders"])
def test_an_operator_sees_all_groups_although_one_has_brackets_in_its_name(name: str) -> None:
    """The group id is the table's title, and rich has a markup in brackets."""
    tables = [Table(("TOPIC",), [("t" * 40,)], title) for title in (name, "other")]
    drawn = shown(Report("x", [], [], tables), None, Screen())
    assert name in drawn
    assert "other" in drawn


def test_the_envelope_reads_back() -> None:
    assert json.loads(to_json("c", [1])) == {"kafkapy": 1, "command": "c", "data": [1]}


def test_a_terminal_too_narrow_for_a_table_shows_each_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table was blank."""
    columns = [f"Column {index}" for index in range(7)]
    report = Report("x", [], [], [Table(columns, [range(7), range(7)], "Title")])
    lines = ["Title", *(f"{column}: {index}" for index, column in enumerate(columns))]
    monkeypatch.setenv("COLUMNS", "28")
    assert shown(report, OutputFormat.table, Screen()).splitlines() == lines * 2
    monkeypatch.setenv("COLUMNS", "29")
    assert "─" in shown(report, OutputFormat.table, Screen())
