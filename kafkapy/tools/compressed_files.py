"""Recognises compressed files by their first bytes, whatever their names are."""

from __future__ import annotations

import re
from typing import Final

HEAD_BYTES: Final = 10
"""The number of first bytes that identify each format."""

# The header of bzip2 is text: only with the start of its first block, or of its end, is it no line.
_MAGIC_NUMBERS: Final = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<bzip2>BZh[1-9](?:1AY&SY|\x17rE8P\x90))|(?P<xz>\xfd7zXZ\0)"
    rb"|(?P<zstd>\(\xb5/\xfd)"
)


def compression_of(head: bytes) -> str | None:
    """The name of the format of a file that begins with these bytes, None if it is none."""
    found = _MAGIC_NUMBERS.match(head)
    return found and found.lastgroup
