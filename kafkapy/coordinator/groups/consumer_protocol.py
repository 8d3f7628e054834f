"""The one thing the coordinator reads in a consumer's subscription: its topics.

`ConsumerProtocolSubscription` v0, a prefix of every later version: version i16, topics [str].
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError
from typing import Final

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_HEAD: Final = Struct(">hi")
_LENGTH: Final = Struct(">h")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all these; None if one is unreadable: some clients put other bytes in."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            topics.update(_topics(subscription))
    except (StructError, ValueError):
        return None
    return frozenset(topics)


def _topics(data: bytes) -> Iterable[str]:
    version, count = _HEAD.unpack_from(data)
    if version < 0 or count < 0:
        raise ValueError("negative version or count")
    position = _HEAD.size
    for _ in range(count):
        (size,) = _LENGTH.unpack_from(data, position)
        start, position = position + _LENGTH.size, position + _LENGTH.size + size
        if size < 0 or position > len(data):
            raise ValueError("a topic's length does not fit")
        yield data[start:position].decode()
