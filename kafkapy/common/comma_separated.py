"""Lists as properties, options and flags write them."""

from __future__ import annotations


def comma_separated(text: str) -> list[str]:
    """The items of `a, b,,c`: without the spaces around them, and without empty ones."""
    return [item.strip() for item in text.split(",") if item.strip()]
