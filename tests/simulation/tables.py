"""Producer of a compacted topic: repeated keys, keys that occur once, and deletions."""

from __future__ import annotations

from typing import Final

from kafkapy.record.builder import RecordData
from tests.simulation.clients import Producer

CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "600",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "300",
}
CLEANER: Final = {"log.cleaner.backoff.ms": "400"}
_KEYS: Final = 4


def row_of(value: int) -> tuple[bytes, bytes | None]:
    """The key and value of the record that carries a number."""
    key = b"once-%d" % value if value % 10 == 0 else b"often-%d" % (value % _KEYS)
    return key, None if value % 7 == 0 else b"%d" % value


class TableWriter(Producer):
    """Writes rows of a table."""

    def record(self, value: int) -> RecordData:
        return RecordData(*row_of(value), super().record(value).timestamp)
