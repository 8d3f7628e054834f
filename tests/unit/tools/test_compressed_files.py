"""The first bytes of compressed files."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import cramjam
import pytest

from kafkapy.tools.compressed_files import HEAD_BYTES, compression_of

FORMATS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
}


@pytest.mark.parametrize("data", [b"", b"line\n"])
@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_known_by_its_first_bytes(name: str, data: bytes) -> None:
    assert compression_of(FORMATS[name](data)[:HEAD_BYTES]) == name


@pytest.mark.parametrize("head", [b"", b"\x1f", b"line\n", b"BZh is no bzip2\n", b"BZh91AY&"])
def test_lines_are_not_compressed(head: bytes) -> None:
    assert compression_of(head) is None
