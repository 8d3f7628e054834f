"""Mismatches that `scripts/conformance --kraft` reports for a command line."""

from pathlib import Path

import pytest

from dev.conformance.kraft_tools import Check, read_checks
from tests.harness.tools.tool_differences import Printed

TABLE = """# a comment
topics --list
| first
| second\\d
| exit 1
=~topics --list --exclude-internal
@settle t 1
"""


def checks(tmp_path: Path) -> list[Check]:
    (tmp_path / "table").write_text(TABLE)
    return list(read_checks(tmp_path / "table"))


def test_the_table_is_read(tmp_path: Path) -> None:
    first, second, step = checks(tmp_path)
    assert (first.beside, first.patterns, first.status) == (False, ["first", r"second\d"], 1)
    assert (second.beside, second.line.unordered, second.patterns) == (True, True, [])
    assert step.line.is_step


@pytest.mark.parametrize(
    ("status", "lines", "right"),
    [
        (1, ("first", "second1", "second2"), True),
        (0, ("first", "second1"), False),
        (1, ("first",), False),
        (1, ("first", "second1", "third"), False),
    ],
)
def test_patterns(tmp_path: Path, status: int, lines: tuple[str, ...], right: bool) -> None:
    check = checks(tmp_path)[0]
    assert (check.complaint(Printed(status, lines), None) is None) == right


def test_beside_kafkas_tool(tmp_path: Path) -> None:
    check = checks(tmp_path)[1]
    theirs = Printed(0, ("a", "b"))
    assert check.complaint(Printed(0, ("b", "a")), theirs) is None
    assert check.complaint(Printed(0, ("a",)), theirs) is not None
    assert check.complaint(Printed(1, ("a", "b")), theirs) is not None
