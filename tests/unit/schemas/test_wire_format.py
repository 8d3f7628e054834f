"""wire_format: ids of schemas, and the places of Protobuf messages."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafkapy.schemas.wire_format import (
    CorruptValue,
    MessagePath,
    id_bytes,
    path_bytes,
    split_id,
    split_path,
)

GUID = UUID("1d20cbb9-e5e3-5e97-54e7-da170b6e5ddb")


def test_ids_at_the_beginning_of_values() -> None:
    assert id_bytes(0x01020304) == b"\0\1\2\3\4"
    assert split_id(id_bytes(7) + b"rest", None) == (7, b"rest")
    assert split_id(id_bytes(2**32 - 1), None) == (2**32 - 1, b"")
    for other in (b"", b"\0\0\0\1", b"{...}", b"\1\0\0\0\7", id_bytes(GUID)):
        assert split_id(other, None) is None


def test_ids_in_headers() -> None:
    assert id_bytes(GUID) == b"\1" + GUID.bytes
    value = id_bytes(7) + b"value"  # any bytes, if there is a header
    assert split_id(value, id_bytes(GUID)) == (GUID, value)
    assert split_id(value, id_bytes(9)) == (9, value)
    assert split_id(b"value", id_bytes(GUID) + b"path") == (GUID, b"pathvalue")
    for other in (b"", id_bytes(GUID)[:-1], b"\0\0\0\1", b"\2" + GUID.bytes):
        assert split_id(value, other) is None


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ((0,), b"\0"),
        ((1,), b"\x02\x02"),
        ((1, 0), b"\x04\x02\0"),
        ((0, 0), b"\x04\0\0"),
        ((129,), b"\x02\x82\x02"),
    ],
)
def test_places_of_messages(path: MessagePath, written: bytes) -> None:
    assert path_bytes(path) == written
    assert split_path(written + b"rest") == (path, b"rest")
    with pytest.raises(CorruptValue, match="it ends in the path of its message"):
        split_path(written[:-1])


def test_the_long_form_of_the_first_message() -> None:
    assert split_path(b"\x02\0rest") == ((0,), b"rest")


@pytest.mark.parametrize("written", [b"\x01", b"\x7e", b"\xfe\xff\xff\xff\x0f"])
def test_impossible_lengths(written: bytes) -> None:
    with pytest.raises(CorruptValue, match="its message has a path of "):
        split_path(written)
