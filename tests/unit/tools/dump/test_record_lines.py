"""The short way from bytes to lines agrees with the long one, or steps aside."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafkapy.cli.commands.dump_log_segments import STRING_DECODER
from kafkapy.record.batch_header import BatchHeader, read_header
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.records import records_payload
from kafkapy.tools.dump.decoders import class_decoder
from kafkapy.tools.dump.printers import Batch, Depth
from kafkapy.tools.dump.record_lines import Gap, record_lines
from kafkapy.tools.dump.text import TextPrinter

TEXTS = st.none() | st.binary(max_size=200)
ROWS = st.lists(
    st.builds(
        RecordData,
        key=TEXTS,
        value=TEXTS,
        timestamp=st.integers(0, 2**41),
        headers=st.lists(st.tuples(st.text(max_size=70), TEXTS), max_size=3),
    ),
    min_size=1,
    max_size=70,
)


def lines(printer: TextPrinter, batch: Batch, written: list[bytes]) -> bytes:
    written.clear()
    printer.records(batch)
    return b"".join(written)


@given(
    ROWS,
    st.booleans(),
    st.booleans(),
    st.sampled_from([-1, 0, 2**31 - 5]),
    st.sampled_from([None, 1_700_000_000_000]),
)
def test_both_ways_write_the_same(
    rows: list[RecordData],
    metadata: bool,
    contents: bool,
    base_sequence: int,
    log_append_time: int | None,
) -> None:
    producer: dict[str, Any] = {"producer_id": 5, "producer_epoch": 1}
    data = build_batch(
        rows,
        base_offset=1000,
        base_sequence=base_sequence,
        log_append_time=log_append_time,
        **(producer if base_sequence >= 0 else {}),
    )
    batch = Batch(0, read_header(data), memoryview(data), True)
    written: list[bytes] = []
    text, _ = class_decoder(STRING_DECODER, STRING_DECODER)
    depth = Depth(True, metadata, text if contents else None)
    printer = TextPrinter(written.append, depth, lambda line: None)
    bulk = lines(printer, batch, written)
    assert len(written) == 1, "not in bulk"
    printer._in_bulk = False
    assert lines(printer, batch, written) == bulk


def two() -> tuple[BatchHeader, bytes]:
    data = build_batch([RecordData(b"k", b"v" * 80, 5, []), RecordData(None, None, 6, [])])
    header = read_header(data)
    return header, records_payload(data, header)


def test_every_damaged_payload_is_left_to_the_long_way() -> None:
    header, payload = two()

    def shown(data: bytes, header: BatchHeader = header) -> bool:
        return record_lines(data, header, metadata=True, contents=True) is not None

    assert shown(payload)
    assert not any(shown(payload[:size]) for size in range(len(payload)))
    assert not shown(payload + b"\0")
    assert not shown(payload, header._replace(record_count=3))
    assert not shown(bytes([payload[0] ^ 2]) + payload[1:])
    assert not shown(b"\xff" * len(payload))


def test_gaps() -> None:
    header, payload = two()
    second = payload.rindex(b"\x0c")  # length, attributes, timestamp delta, offset delta 1
    moved = payload[: second + 3] + b"\x08" + payload[second + 4 :]
    found = record_lines(moved, header, metadata=False, contents=False)
    assert found is not None
    assert found.gaps == [Gap(0, 4)]
    assert (found.first_offset, found.last_offset) == (0, 4)
