"""Text of clients in log lines."""

from __future__ import annotations


def on_one_line(text: str) -> str:
    """The text with escapes for the characters that do not print: a line break would begin a forged
    line, and a terminal obeys control sequences.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
