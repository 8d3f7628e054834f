"""docs/operations/mistakes.md: the messages of likely mistakes, from the table of the tests."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from dev.report import ROOT, table

MISTAKES: Final = ROOT / "tests" / "data" / "mistakes.toml"
# The page shows example addresses instead of those of the tests.
SHOWN: Final = {
    "{plain}": "localhost:9092",
    "{dead}": "localhost:9099",
    "{http}": "localhost:8080",
    "{silent}": "localhost:5000",
    "{tls}": "localhost:9093",
    "{sasl}": "localhost:9094",
    "{both}": "localhost:9095",
    "{log_dir}": "/tmp/kafka-logs",
}


def mistakes() -> list[dict[str, Any]]:
    """The rows of the table."""
    rows: list[dict[str, Any]] = tomllib.loads(MISTAKES.read_text())["mistake"]
    return rows


def page() -> str:
    """The generated part of the page."""
    rows = [
        [
            f"{row['name']}: {_code('kafkapy ' + row['command'])}",
            "<br>".join(_code(line) for line in row["says"]),
            row["todo"],
        ]
        for row in mistakes()
    ]
    return table(["mistake", "output", "remedy"], rows)


def _code(text: str) -> str:
    shown = re.sub("|".join(map(re.escape, SHOWN)), lambda found: SHOWN[found[0]], text)
    return f"`{shown.replace('|', chr(92) + '|')}`"
