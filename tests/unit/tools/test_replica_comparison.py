"""Batches of replicas in lock-step: what differs, where, and in whom."""

from __future__ import annotations

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.builder import build_batch
from kafkapy.tools.replica_comparison import Comparison, ReplicaBatches, compare
from tests.harness.storage.batches import rows
from tests.harness.storage.legacy_messages import message_set

TP = TopicPartition("t", 0)
BATCHES = [build_batch(rows(3), base_offset=base, leader_epoch=1) for base in (0, 3, 6)]
LOG = b"".join(BATCHES)
SIZE = len(BATCHES[0])


def compared(*logs: bytes, high_watermarks: tuple[int, ...] = ()) -> Comparison:
    """Replicas 1, 2 ... with these logs."""
    ends = high_watermarks or (9,) * len(logs)
    replicas = {
        number: ReplicaBatches(end, memoryview(log))
        for number, (log, end) in enumerate(zip(logs, ends, strict=True), 1)
    }
    return compare(TP, 0, replicas)


def flipped(log: bytes, *positions: int) -> bytes:
    changed = bytearray(log)
    for position in positions:
        changed[position] ^= 1
    return bytes(changed)


def test_the_same() -> None:
    assert compared(LOG, LOG, LOG) == (9, 3, [])
    assert compared(LOG) == (9, 3, [])
    # The leader epoch is not under the CRC, and replicas of an old format have none.
    assert compared(LOG, flipped(LOG, 15)) == (9, 3, [])
    assert compared(message_set(1, [0, 1]), message_set(1, [0, 1])) == (2, 2, [])


def test_it_ends_with_the_shortest_replica_and_the_lowest_high_watermark() -> None:
    assert compared(LOG, LOG[: 2 * SIZE + 70]).next_offset == 6
    assert compared(LOG, LOG, high_watermarks=(9, 8)).next_offset == 6
    assert compared(LOG, b"").next_offset == 0


def test_a_rotten_byte_is_found_although_the_stored_checksum_is_the_same() -> None:
    value = LOG.index(b"value", 2 * SIZE)  # in the first record of the last batch
    last_record = LOG.rindex(b"value")
    for position, offset in ((value, 6), (last_record, 8)):
        found = compared(LOG, LOG, flipped(LOG, position))
        (difference,) = found.differences
        assert (difference.field, difference.offset, difference.last_offset) == (
            "checksum",
            offset,
            8,
        )
        assert (difference.replicas, difference.corrupt) == ((1, 3), (3,))
        stored, computed = difference.values
        assert stored != computed
        assert found.next_offset == 9
    text = difference.text()
    assert text.startswith("partition t-0 has unmatched checksum at offset 8; replica 1's checksum")


def test_the_reference_may_be_the_rotten_one() -> None:
    found = compared(flipped(LOG, LOG.index(b"value")), LOG, LOG)
    assert [(d.replicas, d.corrupt) for d in found.differences] == [((1, 2), (1,)), ((1, 3), (1,))]


def test_other_records_with_good_checksums() -> None:
    other = build_batch(rows(2) + rows(1), base_offset=3, leader_epoch=1)
    found = compared(LOG, BATCHES[0] + other + BATCHES[2])
    (difference,) = found.differences
    assert (difference.field, difference.corrupt) == ("checksum", ())
    assert difference.offset == 5  # the third record is another one
    assert found.batches == 3


def test_offsets_that_part_end_it() -> None:
    longer = build_batch(rows(4), base_offset=3, leader_epoch=1)
    found = compared(LOG, BATCHES[0] + longer, high_watermarks=(9, 9))
    assert found.next_offset == 3
    assert [d.text() for d in found.differences] == [
        "partition t-0: replica 1's offset 5 doesn't match replica 2's offset 6"
    ]


def test_a_header_that_is_none_ends_the_replica() -> None:
    broken = LOG[:SIZE] + bytes(16) + b"\x09" + LOG[SIZE + 17 :]
    assert compared(LOG, broken).next_offset == 3
