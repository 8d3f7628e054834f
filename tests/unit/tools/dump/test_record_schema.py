"""Structs by schema: versions, nulls, tags, and bytes that are none."""

from __future__ import annotations

import pytest

from kafkapy.tools.dump.record_schema import (
    Field,
    Malformed,
    Nullable,
    Schema,
    read_struct,
    read_version,
)

SCHEMA = Schema(
    (
        Field("name", "string"),
        Field("old", "int64", until=0),
        Field("new", Nullable("bytes"), since=1),
        Field("rows", [(Field("id", "int16"),)], since=1),
        Field("extra", Nullable((Field("port", "uint16"),)), tag=3),
    ),
    highest=2,
    flexible=2,
)


def test_each_version_has_its_fields() -> None:
    first = b"\0\0" + b"\0\2ab" + bytes(7) + b"\7"
    assert read_struct(SCHEMA, read_version(first), first) == {"name": "ab", "old": 7}
    second = b"\0\1" + b"\0\0" + b"\xff\xff\xff\xff" + b"\0\0\0\2" + b"\0\5\xff\xff"
    assert read_struct(SCHEMA, 1, second) == {
        "name": "",
        "new": None,
        "rows": [{"id": 5}, {"id": -1}],
    }


def test_flexible_lengths_and_tags() -> None:
    body = b"\3ab" + b"\2\xff" + b"\2\0\x09\0"  # a row ends with its own tags: none
    tags = b"\2" + b"\1\2??" + b"\3\4\1\xff\xfe\0"  # tag 1 is not known; tag 3 is not null
    assert read_struct(SCHEMA, 2, b"\0\2" + body + tags) == {
        "name": "ab",
        "new": "/w==",
        "rows": [{"id": 9}],
        "extra": {"port": 0xFFFE},
    }


def test_ids_are_their_text() -> None:
    schema = Schema((Field("id", "uuid"),))
    assert read_struct(schema, 0, bytes(range(16)), start=0) == {"id": "AAECAwQFBgcICQoLDA0ODw"}


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (3, b"\0\3"),
        (-1, b"\xff\xff"),
        (0, b"\0\0\0\5ab"),
        (0, b"\0\0\xff\xff"),
        (1, b"\0\1\0\0\0\0\0\0\x7f\xff\xff\xff"),
        (2, b"\0\2\xff"),
        (2, b"\0\2" + b"\x83\x80\x80\x80\x80\0ab" + b"\0\1\0"),  # a length of six bytes
    ],
)
def test_what_is_none(version: int, data: bytes) -> None:
    with pytest.raises(Malformed):
        read_struct(SCHEMA, version, data)
    with pytest.raises(Malformed):
        read_version(b"\0")
