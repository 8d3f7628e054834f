"""The interface of printers, and their input: batches and the depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from kafkapy.record.batch_header import BatchHeader
from kafkapy.record.control import (
    ControlRecordType,
    control_type_id,
    read_end_transaction_marker,
)
from kafkapy.record.records import Record
from kafkapy.tools.dump.decoders import Decoder
from kafkapy.tools.dump.findings import Findings
from kafkapy.tools.dump.items import Item
from kafkapy.tools.dump.record_lines import Gap

Write = Callable[[bytes], object]


class Batch(NamedTuple):
    """A batch with its position in the file. `data` is its bytes."""

    position: int
    header: BatchHeader
    data: memoryview
    is_valid: bool


class Depth(NamedTuple):
    """The parts of records to show. `decoder` is None if keys and values are not shown."""

    records: bool = False
    metadata: bool = True
    decoder: Decoder | None = None


class Offsets(NamedTuple):
    """The offsets of a batch's records: the first, the last (-1: no record), and the gaps."""

    first: int = -1
    last: int = -1
    gaps: list[Gap] = []  # noqa: RUF012 (never changed)


class Printer(Protocol):
    """Prints the parts of a dump."""

    def item(self, item: Item) -> None: ...

    def batch(self, batch: Batch) -> None: ...

    def records(self, batch: Batch) -> Offsets:
        """
        Raises:
            ApiError, UndecodableRecord: a record cannot be read; those before it are written.
        """
        ...

    def findings(self, findings: Findings) -> None: ...


class OffsetTracker:
    """Collects the first offset, the last offset and the gaps, record by record."""

    __slots__ = ("first", "gaps", "last")

    def __init__(self) -> None:
        self.first = self.last = -1
        self.gaps: list[Gap] = []

    def add(self, offset: int) -> None:
        """Add the next record's offset."""
        if self.first == -1:
            self.first = offset
        elif offset != self.last + 1:
            self.gaps.append(Gap(self.last, offset))
        self.last = offset

    def offsets(self) -> Offsets:
        return Offsets(self.first, self.last, self.gaps)


def control_text(record: Record) -> str:
    """A control record as text."""
    type_id = control_type_id(record.key)
    marker = read_end_transaction_marker(record.key, record.value)
    if marker is not None:
        epoch = marker.coordinator_epoch
        return f"endTxnMarker: {marker.control_type.name} coordinatorEpoch: {epoch}"
    known = type_id in ControlRecordType.__members__.values()
    if known:
        # Imported here, because the schemas of internal topics are seldom needed.
        from kafkapy.tools.dump.internal_decoders import snapshot_text

        text = snapshot_text(ControlRecordType(type_id), record)
        if text is not None:
            return text
    return f"controlType: {ControlRecordType(type_id).name if known else 'UNKNOWN'}({type_id})"
