"""The assignment of a consumer group member (`ConsumerProtocolAssignment`)."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final

from kafkapy.common.topic_partition import TopicPartition

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_HEAD: Final = Struct(">hi")
_LENGTH: Final = Struct(">h")
_COUNT: Final = Struct(">i")


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions of an assignment, in its order; none without bytes.

    Versions 0 to 3 are alike: version i16, [topic string, [partition i32]], user data.

    Raises:
        ValueError: the bytes are not an assignment.
    """
    if not data:
        return ()
    found: list[TopicPartition] = []
    try:
        version, topics = _HEAD.unpack_from(data)
        if version < 0:
            raise ValueError(f"version {version}")
        position = _HEAD.size
        for _ in range(topics):
            (size,) = _LENGTH.unpack_from(data, position)
            start = position + _LENGTH.size
            topic = data[start : start + size].decode()
            (count,) = _COUNT.unpack_from(data, start + size)
            position = start + size + _COUNT.size
            partitions = Struct(f">{count}i").unpack_from(data, position)
            found += [TopicPartition(topic, partition) for partition in partitions]
            position += 4 * count
    except (StructError, ValueError) as error:
        raise ValueError(f"not a consumer's assignment: {error}") from error
    return tuple(found)
