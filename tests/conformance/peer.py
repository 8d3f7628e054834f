"""The face every client shows to the checks, whatever it is written in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tests.conformance.workload import Received, Row

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SHARE = "share"
"""The protocol of share groups: their members accept records."""


def limit_s(count: int) -> float:
    """Seconds after which a client that handles `count` records counts as stuck."""
    return 60 + count / 500


class Peer(Protocol):
    """One unmodified Kafka client, writing with acks=all to keyed partitions."""

    @property
    def name(self) -> str: ...

    @property
    def codecs(self) -> tuple[str, ...]:
        """The codecs it can write and read here."""
        ...

    @property
    def sets_timestamps(self) -> bool:
        """Whether each record can be given its timestamp."""
        ...

    @property
    def fixed_headers(self) -> bool:
        """Whether all records of a run have the same headers."""
        ...

    def version(self) -> str: ...

    def produce(self, servers: str, topic: str, codec: str, rows: Sequence[Row]) -> None:
        """Write all rows; an error of any of them is raised."""
        ...

    def consume(self, servers: str, topic: str, group: str, count: int) -> list[Received]:
        """Join the group, read exactly `count` records, commit exactly those, leave.

        Raises AssertionError when they do not arrive in time.
        """
        ...

    def offset_for_time(self, servers: str, topic: str, partition: int, timestamp: int) -> int:
        """The first offset whose timestamp is at least `timestamp`."""
        ...
