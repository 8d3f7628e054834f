"""docs/operations/messages.md explains messages that the code has."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operations" / "messages.md"
MESSAGES = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)


@cache
def strings() -> str:
    """The sources, with literals that follow each other joined."""
    text = "\n".join(path.read_text() for path in (ROOT / "kafkapy").rglob("*.py"))
    return re.sub(r"\"\s*\n?\s*f?\"", "", text)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_page_is_in_the_sources(message: str) -> None:
    parts = [part.strip(" ':;,") for part in message.split("...")]
    assert any(parts)
    assert not [part for part in parts if part not in strings()]


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 30
