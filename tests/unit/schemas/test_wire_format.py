"""wire_format: headers, and the places of Protobuf messages."""

from __future__ import annotations

import pytest

from kafkapy.schemas.wire_format import (
    CorruptValue,
    MessagePath,
    header,
    path_bytes,
    split_header,
    split_path,
)


def test_headers() -> None:
    assert header(0x01020304) == b"\0\1\2\3\4"
    assert split_header(header(7) + b"rest") == (7, b"rest")
    assert split_header(header(2**32 - 1)) == (2**32 - 1, b"")
    for other in (b"", b"\0\0\0\1", b"{...}", b"\1\0\0\0\7"):
        assert split_header(other) is None


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
