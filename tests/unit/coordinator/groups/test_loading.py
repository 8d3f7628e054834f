"""Becoming the coordinator of a partition by replaying its log, and ceasing to be it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.groups.group_coordinator import GroupCoordinator
from kafkapy.coordinator.groups.group_offsets import NO_PRODUCER_ID
from kafkapy.coordinator.groups.messages import (
    DeleteGroups,
    DescribeGroups,
    FetchedOffset,
    FetchOffsets,
    ListGroups,
)
from kafkapy.coordinator.groups.record_codec import (
    GroupValue,
    MemberValue,
    OffsetAndMetadata,
    group_key,
    group_value,
    offset_key,
    offset_value,
)
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.control import end_transaction_marker
from tests.harness.cores.consumer_shell import ConsumerShell
from tests.harness.cores.group_shell import T0, GroupShell, replay
from tests.harness.storage.batches import flipped, moved, raw_batch, row_bytes

PRODUCER = 42


def commit(offset: int, group_id: str = "g") -> RecordData:
    value = offset_value(OffsetAndMetadata(offset, -1, "", 1_000))
    return RecordData(offset_key(group_id, T0), value, 1_000)


def empty_group(generation_id: int) -> RecordData:
    value = GroupValue("consumer", generation_id, None, None, 1_000, [])
    return RecordData(group_key("g"), group_value(value), 1_000)


OFFSET_TOMBSTONE = RecordData(offset_key("g", T0), None)
GROUP_TOMBSTONE = RecordData(group_key("g"), None)


def loaded(*records: RecordData) -> GroupCoordinator:
    coordinator = GroupShell(load=False).coordinator
    assert coordinator.start_loading(0, 3)
    for offset, record in enumerate(records):
        replay(coordinator, 0, offset, record)
    coordinator.finish_loading(0, 0)
    return coordinator


def replayed(records: bytes) -> GroupCoordinator:
    coordinator = GroupShell(load=False).coordinator
    coordinator.start_loading(0, 3)
    coordinator.replay_batches(0, records)
    coordinator.finish_loading(0, 0)
    return coordinator


def fetched(
    coordinator: GroupCoordinator, stable: bool = False, group_id: str = "g"
) -> FetchedOffset:
    wanted = FetchOffsets(group_id, [T0], require_stable=stable)
    effects = coordinator.fetch_offsets(0, "token", wanted)
    ((_, result),) = effects.replies
    offset: FetchedOffset = result.offsets[T0]  # type: ignore[union-attr]
    return offset


def state(coordinator: GroupCoordinator) -> str:
    ((_, result),) = coordinator.describe_groups(0, "token", DescribeGroups(["g"])).replies
    return result.groups[0].state  # type: ignore[union-attr]


def test_the_later_record_counts() -> None:
    assert fetched(loaded(commit(1), commit(2))).offset == 2
    group = loaded(empty_group(1), empty_group(4))._core.registry.find("g")
    assert group is not None
    assert group.generation_id == 4


def test_a_group_is_there_if_it_has_metadata_or_offsets() -> None:
    assert state(loaded()) == "Dead"
    assert state(loaded(commit(1))) == "Empty"
    assert state(loaded(empty_group(1))) == "Empty"
    assert state(loaded(commit(1), OFFSET_TOMBSTONE)) == "Dead"
    assert state(loaded(empty_group(1), GROUP_TOMBSTONE)) == "Dead"
    assert state(loaded(OFFSET_TOMBSTONE, GROUP_TOMBSTONE)) == "Dead"


def test_offsets_and_metadata_have_records_of_their_own() -> None:
    assert fetched(loaded(commit(1), empty_group(1))).offset == 1
    left = loaded(commit(1), empty_group(1), GROUP_TOMBSTONE)
    assert (fetched(left).offset, state(left)) == (1, "Empty")


@pytest.mark.parametrize(
    "record",
    [
        RecordData(bytes.fromhex("0003 0001 67"), b"\0\0"),
        RecordData(bytes.fromhex("0001 00"), b"\0\0"),
        RecordData(None, None),
        RecordData(offset_key("g", T0), b"\x00\x09"),
        RecordData(group_key("g"), b"\x00\x03"),
    ],
    ids=["new protocol", "cut key", "no key", "later value", "cut value"],
)
def test_a_record_that_is_not_understood_costs_only_itself(
    record: RecordData, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        coordinator = loaded(commit(1), record)
    assert fetched(coordinator).offset == 1
    assert "offset 1 of __consumer_offsets-0" in caplog.text


@pytest.mark.parametrize("same", [{"member_id": "m"}, {"group_instance_id": "i"}])
def test_a_group_that_names_a_member_twice_is_not_taken(
    same: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Removing one of the two removed the other's name, and removing that one raised."""
    members = [
        MemberValue(name, f"instance of {name}", "c", "/h", 60_000, 10_000, b"", b"")._replace(
            **same
        )
        for name in ("a", "b")
    ]
    value = GroupValue("consumer", 7, "range", "a", 1_000, members)
    garbage = RecordData(group_key("g"), group_value(value), 1_000)
    with caplog.at_level(logging.ERROR):
        group = loaded(empty_group(4), garbage)._core.registry.find("g")
    assert group is not None
    assert (group.generation_id, len(group.members)) == (4, 0)
    assert "names a member twice" in caplog.text


def test_transactional_offsets_load_as_pending() -> None:
    coordinator = GroupShell(load=False).coordinator
    coordinator.start_loading(0, 3)
    replay(coordinator, 0, 0, commit(1))
    replay(coordinator, 0, 1, commit(2), PRODUCER)
    coordinator.finish_loading(0, 0)
    assert fetched(coordinator).offset == 1
    assert fetched(coordinator, stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    coordinator.end_transaction(0, PRODUCER, committed=True)
    assert fetched(coordinator, stable=True).offset == 2
    coordinator.end_transaction(0, PRODUCER, committed=True)
    coordinator.end_transaction(7, PRODUCER, committed=True)


def test_a_late_marker_does_not_keep_the_next_one_from_offsets_on_their_way() -> None:
    """A coordinator that got no answer sends a marker twice. The second may come when the producer
    has begun the next transaction."""
    shell = GroupShell()
    shell.hold()
    shell.commit(5, producer=Producer(PRODUCER, 0))
    shell.coordinator.end_transaction(0, PRODUCER, committed=True)
    shell.release()
    assert fetched(shell.coordinator, stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    shell.coordinator.end_transaction(0, PRODUCER, committed=True)
    assert fetched(shell.coordinator, stable=True).offset == 5


def test_offsets_that_are_stored_after_their_coordinator_moved_are_the_next_ones() -> None:
    shell = GroupShell()
    shell.hold()
    shell.commit(5, producer=Producer(PRODUCER, 0))
    shell.perform(shell.coordinator.unload(0, 6))
    shell.release()
    coordinator = shell.coordinator
    coordinator.start_loading(0, 7)
    coordinator.finish_loading(0, 0)
    coordinator.end_transaction(0, PRODUCER, committed=True)
    assert fetched(coordinator) == FetchedOffset()


def test_a_deleted_group_is_not_back_with_the_marker_of_a_transaction() -> None:
    shell = GroupShell()
    shell.commit(5, producer=Producer(PRODUCER, 0))
    [error] = shell.ask(shell.coordinator.delete_groups, DeleteGroups(["g"])).errors.values()
    assert error is ErrorCode.NONE
    before, after = shell.coordinator, GroupShell(load=False).coordinator
    after.start_loading(0, 6)
    for offset, append in enumerate(shell.appends):
        [record] = append.records
        producer_id = NO_PRODUCER_ID if append.producer is None else append.producer.producer_id
        replay(after, 0, offset, record, producer_id)
    after.finish_loading(0, 0)
    for coordinator in (before, after):
        coordinator.end_transaction(0, PRODUCER, committed=True)
        assert fetched(coordinator) == FetchedOffset()


def test_a_partition_that_is_deleted_during_the_load_leaves_no_offset() -> None:
    shell = GroupShell(load=False)
    coordinator = shell.coordinator
    coordinator.start_loading(0, 3)
    replay(coordinator, 0, 0, commit(1))
    shell.perform(coordinator.on_partitions_deleted([T0], 2_000))
    replay(coordinator, 0, 1, commit(2))
    replay(coordinator, 0, 2, commit(5, "other"))
    shell.perform(coordinator.finish_loading(0, 0))
    assert fetched(coordinator) == fetched(coordinator, group_id="other") == FetchedOffset()
    assert [r.key for append in shell.appends for r in append.records] == [
        offset_key("g", T0),
        offset_key("other", T0),
    ]


def transactional(*records: RecordData, base_offset: int) -> bytes:
    return build_batch(
        records,
        base_offset=base_offset,
        producer_id=PRODUCER,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


@pytest.mark.parametrize("committed", [True, False])
def test_raw_batches_replay_with_their_markers(committed: bool) -> None:
    marker = end_transaction_marker(
        commit=committed,
        producer_id=PRODUCER,
        producer_epoch=0,
        coordinator_epoch=1,
        timestamp=1_000,
        base_offset=4,
    )
    coordinator = GroupShell(load=False).coordinator
    coordinator.start_loading(0, 3)
    coordinator.replay_batches(0, build_batch([commit(1)], base_offset=0))
    pending = transactional(commit(2), commit(3), base_offset=1)
    coordinator.replay_batches(0, pending + marker)
    coordinator.finish_loading(0, 0)
    assert fetched(coordinator, stable=True).offset == (3 if committed else 1)


LYING_VALUE = row_bytes(b"\x00\x00\x00\x02k\x7fv\x00")
"""A record whose value says that it is longer than the record."""


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (raw_batch(LYING_VALUE, 1, base_offset=1), "Record 0 of the batch at offset 1"),
        (raw_batch(b"not zstd", 1, Codec.ZSTD, base_offset=1), "do not decompress"),
        (raw_batch(b"\x00", 2**31 - 1, base_offset=1), "length 0 is out of bounds"),
        (raw_batch(b"codec 7", 1, 7, base_offset=1), "Unknown compression codec 7"),
        (flipped(build_batch([commit(9)], base_offset=1)), "crc"),
        (raw_batch(row_bytes(bytes(6)), 1, 0x20, base_offset=1), "control record"),
    ],
    ids=["value length", "compression", "count", "codec", "crc", "marker"],
)
def test_a_batch_that_cannot_be_read_costs_only_itself(
    bad: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = build_batch([commit(1), commit(1, "other")], base_offset=0)
    after = build_batch([commit(3)], base_offset=2)
    with caplog.at_level(logging.ERROR):
        coordinator = replayed(before + bad + after)
    assert fetched(coordinator).offset == 3
    assert fetched(coordinator, group_id="other").offset == 1
    (line,) = [record.getMessage() for record in caplog.records]
    assert "__consumer_offsets-0" in line
    assert "offset 1" in line
    assert why in line


def test_what_can_be_read_of_a_batch_with_a_bad_record_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, last = (
        build_batch([commit(offset, name)])[61:] for offset, name in ((1, "a"), (2, "b"))
    )
    last = moved(last, 3)
    payload = first + LYING_VALUE * 2 + last
    with caplog.at_level(logging.ERROR):
        coordinator = replayed(raw_batch(payload, 4, base_offset=7))
    assert [fetched(coordinator, group_id=name).offset for name in "ab"] == [1, 2]
    (line,) = [record.getMessage() for record in caplog.records]
    assert "2 of the 4 records" in line
    assert "offset 7" in line


def test_a_bad_batch_does_not_leave_a_transaction_open() -> None:
    """The marker behind it counts."""
    bad = raw_batch(LYING_VALUE, 1, base_offset=2)
    marker = end_transaction_marker(
        commit=True, producer_id=PRODUCER, producer_epoch=0, coordinator_epoch=1,
        timestamp=1_000, base_offset=3,
    )  # fmt: skip
    coordinator = replayed(transactional(commit(2), base_offset=1) + bad + marker)
    assert fetched(coordinator, stable=True).offset == 2


def test_a_partition_is_loaded_once() -> None:
    shell = GroupShell()
    shell.commit()
    assert not shell.coordinator.start_loading(0, leader_epoch=9)
    assert fetched(shell.coordinator).offset == 1
    shell.commit()
    assert shell.appends[-1].leader_epoch == 9
    with pytest.raises(AssertionError, match="which is loaded"):
        replay(shell.coordinator, 0, 0, commit(1))


def test_an_older_epoch_does_not_unload() -> None:
    shell = GroupShell()
    shell.commit()
    shell.coordinator.unload(0, leader_epoch=4)
    shell.coordinator.unload(3)
    assert fetched(shell.coordinator).offset == 1
    shell.coordinator.unload(0, leader_epoch=6)
    assert shell.coordinator._core.registry.partitions == {}


def test_groups_list_while_another_partition_loads() -> None:
    shell = GroupShell(GroupConfig(offsets_topic_num_partitions=2), load=False)
    coordinator = shell.coordinator
    here = coordinator.partition_for("g")
    for partition in (here, 1 - here):
        coordinator.start_loading(partition, 1)
        replay(coordinator, partition, 0, commit(1))
    coordinator.finish_loading(here, 0)
    result = shell.ask(coordinator.list_groups, ListGroups())
    assert result.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert [[group.group_id for group in piece] for piece in result.groups] == [["g"]]


def after_kafka_3_9() -> ConsumerShell:
    """A shell that loads the log of a consumer group that Apache Kafka 3.9 coordinated since."""
    shell = ConsumerShell()
    shell.consumer("old")
    shell.commit(7, member_id="old", generation_id=1)
    shell.log.append((0, empty_group(4)))
    shell.fail_over()
    return shell


def compacted(shell: ConsumerShell) -> dict[bytes | None, bytes]:
    """The log after compaction, when its tombstones are removed."""
    last = {record.key: record.value for _, record in shell.log}
    return {key: value for key, value in last.items() if value is not None}


def form_generation(shell: ConsumerShell) -> None:
    member_id, _ = shell.join_new()
    shell.advance(3_000)
    assert shell.replies[shell.sync(member_id, 5)].error is ErrorCode.NONE


def upgrade(shell: ConsumerShell) -> None:
    assert shell.consumer("new").partitions
    shell.consumer("new").leave()


def delete(shell: ConsumerShell) -> None:
    result = shell.ask(shell.coordinator.delete_groups, DeleteGroups(["g"]))
    assert result.errors == {"g": ErrorCode.NONE}


@pytest.mark.parametrize("change", [form_generation, upgrade, delete])
def test_members_from_before_kafka_3_9_do_not_return(
    change: Callable[[ConsumerShell], None],
) -> None:
    """Kafka 3.9 wrote the record of a classic group, and left those of the consumer group. They
    counted again after the compaction of the classic record."""
    shell = after_kafka_3_9()
    assert shell.group().consumer is None
    change(shell)
    old = [key for key in compacted(shell) if b"old" in (key or b"")]
    assert old == []
    written = len(shell.appends)
    shell.fail_over()
    if change is form_generation:
        assert shell.group().consumer is None
        shell.leave(*shell.group().members)
        records = [record for append in shell.appends[written:] for record in append.records]
        assert [record.key for record in records] == [group_key("g")], "they are deleted once"


def test_members_do_not_return_to_a_group_that_kafka_3_9_deleted() -> None:
    shell = ConsumerShell()
    shell.consumer("old")
    shell.commit(7, member_id="old", generation_id=1)
    shell.log += [(0, empty_group(4)), (0, empty_group(5)), (0, GROUP_TOMBSTONE)]
    shell.fail_over()
    shell.consumer("new")
    assert [key for key in compacted(shell) if b"old" in (key or b"")] == []
    shell.fail_over()
    assert [*shell.consumers.members] == ["new"]
