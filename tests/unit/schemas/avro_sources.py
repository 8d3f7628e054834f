"""Avro schemas of the tests."""

from __future__ import annotations

A = {"name": "a", "type": "int"}


def record(name: str = "R", *fields: object, **more: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": list(fields)} | more
