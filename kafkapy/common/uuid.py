"""Kafka's 128-bit ids (`common.Uuid`): 16 raw bytes, shown as 22 base64url letters."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ConfigError

if TYPE_CHECKING:
    from kafkapy.common.ports import Random

_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}")


class Uuid(bytes):
    """A topic, cluster or directory id, equal and hashed as its 16 bytes; `str()` is its text."""

    __slots__ = ()

    def __new__(cls, raw: bytes) -> Uuid:
        """Wrap 16 raw bytes (most significant first).

        Raises:
            ValueError: `raw` is not 16 bytes long.
        """
        if len(raw) != 16:
            raise ValueError(f"a Uuid has 16 bytes, not {len(raw)}")
        return super().__new__(cls, raw)

    @classmethod
    def parse(cls, text: str) -> Uuid:
        """Read the 22-letter form.

        Raises:
            ConfigError: the text has another form.
        """
        # The decoder would skip letters outside its alphabet.
        if not _TEXT.fullmatch(text):
            raise ConfigError(f"'{text}' is not a Kafka id (22 base64url letters)")
        return cls(base64.urlsafe_b64decode(text + "=="))

    @classmethod
    def random(cls, random: Random) -> Uuid:
        """A version-4 id, never a reserved one and never one whose text starts with a dash."""
        while True:
            raw = bytearray(random.bytes(16))
            raw[6] = (raw[6] & 0x0F) | 0x40
            raw[8] = (raw[8] & 0x3F) | 0x80
            uuid = cls(bytes(raw))
            if not str(uuid).startswith("-"):
                return uuid

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self).rstrip(b"=").decode()

    def __repr__(self) -> str:
        return f"Uuid({str(self)!r})"

    @property
    def is_zero(self) -> bool:
        """Whether this is the id that means "none"."""
        return self == ZERO_UUID


ZERO_UUID = Uuid(bytes(16))
