"""Encoded messages in one piece, without a header."""

from __future__ import annotations

from kafkapy.protocol.compile import encode
from kafkapy.protocol.primitives import Buffer
from kafkapy.protocol.schema import Message


def encode_bytes(message: Message, version: int) -> bytes:
    """The bytes of `message`. Raises as `encode`."""
    parts: list[Buffer] = []
    encode(message, version, parts)
    return b"".join(parts)
