"""Parses the lists of properties, options and flags."""

from __future__ import annotations


def comma_separated(text: str) -> list[str]:
    """The items of `a, b,,c`: without the spaces around them, and without empty ones."""
    return [item.strip() for item in text.split(",") if item.strip()]


def java_split(text: str) -> list[str]:
    """The items of `a,b,,` as Java's `text.split(",")`: without empty ones at the end. An empty
    text has one empty item, commas alone have none."""
    items = text.rstrip(",").split(",")
    return items if text == "" or items != [""] else []
