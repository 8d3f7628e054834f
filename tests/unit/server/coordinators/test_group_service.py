"""Groups over a real `__consumer_offsets`: what is answered is in the log, and is found again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.errors import ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat
from kafkapy.coordinator.groups.messages import (
    CommitOffsets,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    OffsetToCommit,
)
from kafkapy.coordinator.groups.share.messages import ShareHeartbeat
from kafkapy.coordinator.shares.messages import InitializeState, ReadSummary, StateResult
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import write_header
from kafkapy.record.codec import Codec
from kafkapy.server.requests.outcomes import Pending
from tests.harness.cores.consumer_shell import topic_id
from tests.harness.cores.server_parts import Parts
from tests.harness.cores.znodes import run
from tests.harness.scripted import admins
from tests.harness.storage.partitions import TOPIC_ID

T0 = TopicPartition("t", 0)
OFFSETS = TopicPartition(GROUP_METADATA_TOPIC, 0)


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path, properties={"group.initial.rebalance.delay.ms": "3000"})


def ask(parts: Parts, request: Any) -> Any:
    """The coordinator's result, or the `Pending` of one that waits."""
    coordinator = parts.groups.coordinator
    method = {
        CommitOffsets: coordinator.commit_offsets,
        FetchOffsets: coordinator.fetch_offsets,
        Heartbeat: coordinator.heartbeat,
        JoinGroup: coordinator.join_group,
    }[type(request)]
    return parts.groups.call(method, request, lambda result: result)


def commit(parts: Parts, offset: int, group: str = "g") -> Any:
    answer = ask(parts, CommitOffsets(group, {T0: OffsetToCommit(offset)}))
    return answer if isinstance(answer, Pending) else answer.errors[T0]


def committed(parts: Parts, group: str = "g") -> int:
    result = ask(parts, FetchOffsets(group, [T0]))
    assert result.error is ErrorCode.NONE
    offset: int = result.offsets[T0].offset
    return offset


def finish_loading(parts: Parts) -> None:
    """Give the event loop back until the groups are there."""
    while 0 in parts.timers.delays_s:
        parts.timers.fire()


def join(member_id: str = "", group: str = "g") -> JoinGroup:
    return JoinGroup(
        group,
        member_id,
        "consumer",
        [("range", b"")],
        10_000,
        60_000,
        requires_known_member_id=False,
    )


def log_bytes(parts: Parts) -> bytes:
    log = parts.replicas.get(*OFFSETS).log
    return bytes(log.read(0, 1 << 20, log.log_end_offset, True).records)


def test_only_the_leader_of_a_groups_partition_coordinates_it(parts: Parts) -> None:
    assert commit(parts, 5) is ErrorCode.NOT_COORDINATOR
    parts.coordinate()
    assert commit(parts, 5) is ErrorCode.NONE
    parts.lead("other-topic")
    parts.coordinate_on_other_broker()
    assert commit(parts, 6) is ErrorCode.NOT_COORDINATOR


def test_an_answered_commit_is_in_the_log_and_survives_the_broker(tmp_path: Path) -> None:
    before = Parts(tmp_path)
    before.coordinate()
    assert [commit(before, offset) for offset in (5, 6, 7)] == [ErrorCode.NONE] * 3
    assert commit(before, 1, "h") is ErrorCode.NONE
    before.logs.shutdown()
    # The smallest buffer: every batch is a read of its own.
    after = Parts(tmp_path, properties={"offsets.load.buffer.size": "1"})
    after.coordinate(leader_epoch=1)
    finish_loading(after)
    assert (committed(after), committed(after, "h")) == (7, 1)


def test_loading_reads_on_behind_a_batch_that_the_buffer_cut(tmp_path: Path) -> None:
    before = Parts(tmp_path)
    before.coordinate()
    for i in range(20):
        commit(before, i, f"g{i}")
    size = next(h.size for _, h in iter_headers(log_bytes(before)))
    before.logs.shutdown()
    after = Parts(tmp_path, properties={"offsets.load.buffer.size": str(3 * size + size // 2)})
    after.coordinate(leader_epoch=1)
    finish_loading(after)
    assert [committed(after, f"g{i}") for i in range(20)] == list(range(20))


@pytest.fixture
def loading(tmp_path: Path) -> Parts:
    """A broker that has replayed the first of three commits and lets others go first."""
    before = Parts(tmp_path)
    before.coordinate()
    for offset in (5, 6, 7):
        commit(before, offset)
    before.logs.shutdown()
    parts = Parts(tmp_path, properties={"offsets.load.buffer.size": "1"})
    parts.coordinate(leader_epoch=1)
    return parts


def test_other_requests_are_served_between_the_slices_of_a_load(loading: Parts) -> None:
    loading.lead("t")
    assert commit(loading, 8) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert loading.timers.delays_s == [0]
    finish_loading(loading)
    assert committed(loading) == 7
    assert loading.timers.delays_s == []


def test_a_load_ends_when_another_broker_takes_the_partition(loading: Parts) -> None:
    loading.coordinate_on_other_broker()
    loading.timers.fire()
    assert loading.timers.delays_s == []
    assert commit(loading, 8) is ErrorCode.NOT_COORDINATOR


def test_a_load_that_begins_anew_is_not_mixed_with_the_first(loading: Parts) -> None:
    loading.coordinate_on_other_broker()
    loading.coordinate(leader_epoch=10, partition_epoch=10)
    finish_loading(loading)
    assert committed(loading) == 7


@pytest.mark.parametrize("true_crc", [True, False])
def test_a_batch_that_cannot_be_read_does_not_hide_the_commits_behind_it(
    loading: Parts, caplog: pytest.LogCaptureFixture, true_crc: bool
) -> None:
    log = loading.replicas.get(*OFFSETS).log
    headers = list(iter_headers(log_bytes(loading)))
    path = Path(log.directory) / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    position, header = headers[1]
    content[position + 61 : position + header.size] = b"\xff" * (header.size - 61)
    if true_crc:
        write_header(memoryview(content)[position : position + header.size], header)
    path.write_bytes(content)
    finish_loading(loading)
    assert committed(loading) == 7
    assert "in the batch at offset 1 of __consumer_offsets-0" in caplog.text


def test_a_commit_waits_until_it_is_replicated(parts: Parts) -> None:
    partition = parts.coordinate(isr=(1, 2))
    pending = commit(parts, 5)
    assert isinstance(pending, Pending)
    assert (pending.done, committed(parts)) == (False, -1)
    parts.fetch_as_follower(partition, 1)
    assert pending.response.errors == {T0: ErrorCode.NONE}
    assert committed(parts) == 5


def test_a_commit_that_is_not_replicated_in_time_is_refused(parts: Parts) -> None:
    parts.coordinate(isr=(1, 2))
    pending = commit(parts, 5)
    assert parts.timers.delays_s == [5.0]
    parts.clock.now_ms += 5000
    parts.timers.fire()
    assert pending.response.errors == {T0: ErrorCode.REQUEST_TIMED_OUT}
    assert committed(parts) == -1


def test_a_commit_that_cannot_be_appended_is_refused(parts: Parts) -> None:
    parts.coordinate(replicas=(1, 2))
    parts.logs.update_topic_config(GROUP_METADATA_TOPIC, {"min.insync.replicas": "2"})
    assert commit(parts, 5) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert committed(parts) == -1


def test_batches_are_compressed_as_configured(tmp_path: Path) -> None:
    parts = Parts(tmp_path, properties={"offsets.topic.compression.codec": "1"})
    parts.coordinate()
    commit(parts, 5)
    assert [h.codec for _, h in iter_headers(log_bytes(parts))] == [Codec.GZIP]


def test_a_join_waits_for_the_others_until_its_timer(parts: Parts) -> None:
    parts.coordinate()
    pending = ask(parts, join())
    assert isinstance(pending, Pending)
    assert parts.timers.delays_s == [3.0]
    parts.clock.now_ms += 2_999
    parts.timers.fire()
    assert not pending.done
    assert parts.timers.delays_s == [0.001]
    parts.clock.now_ms += 1
    parts.timers.fire()
    assert (pending.response.error, pending.response.generation_id) == (ErrorCode.NONE, 1)


def test_the_timer_is_for_the_earliest_of_all_groups(parts: Parts) -> None:
    parts.coordinate()
    ask(parts, join())
    parts.clock.now_ms += 1000
    ask(parts, join(group="h"))
    assert parts.timers.delays_s == [3.0]
    parts.groups.stop()
    assert parts.timers.delays_s == []


def test_a_member_that_left_the_connection_is_not_answered(parts: Parts) -> None:
    parts.coordinate()
    pending = ask(parts, join())
    assert len(parts.groups.coordinator._core.outbox._token_by_ticket) == 1
    pending.abandon()
    assert not parts.groups.coordinator._core.outbox._token_by_ticket
    parts.clock.now_ms += 3000
    parts.timers.fire()
    assert pending.response is None


def test_who_waits_when_leadership_moves_is_sent_elsewhere(parts: Parts) -> None:
    parts.coordinate()
    pending = ask(parts, join())
    parts.coordinate_on_other_broker()
    assert pending.response.error is ErrorCode.NOT_COORDINATOR
    assert ask(parts, Heartbeat("g", 1, "m")).error is ErrorCode.NOT_COORDINATOR


def test_other_topics_are_none_of_its_business(parts: Parts) -> None:
    parts.groups.coordinator.set_num_partitions(1)
    parts.lead("t")
    assert commit(parts, 5) is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(("existing", "expected"), [(None, 50), (7, 7)])
def test_groups_are_spread_over_the_partitions_that_the_topic_has(
    parts: Parts, existing: int | None, expected: int
) -> None:
    """The config counts only for a topic that is yet to be made: else groups lose their offsets."""
    store = admins.store()
    if existing is not None:
        assignment = dict.fromkeys(range(existing), (1,))
        run(store.topics.create(TopicDescription(GROUP_METADATA_TOPIC, TOPIC_ID, assignment)))
    run(parts.groups.start(store))
    # hash("Hello World") is -862545276.
    assert parts.groups.coordinator.partition_for("Hello World") == 862545276 % expected


def beat(parts: Parts, epoch: int) -> Any:
    """The answer to a heartbeat of a consumer group's one member."""
    joins: dict[str, Any] = {"rebalance_timeout_ms": 1, "subscribed_names": ["t"], "owned": {}}
    heartbeat = ConsumerHeartbeat("g", "m", epoch, **({} if epoch else joins))
    coordinator = parts.groups.coordinator
    parts.waiter.mark_complete()
    return parts.groups.call(coordinator.consumer_heartbeat, heartbeat, lambda result: result)


def test_a_consumer_group_is_in_the_log_when_its_member_is_told(tmp_path: Path) -> None:
    """And the next leader of the partition knows the member and its epoch."""
    before = Parts(tmp_path)
    before.coordinate()
    joined = beat(before, 0)
    assert (joined.error, joined.member_epoch) == (ErrorCode.NONE, 1)
    before.logs.shutdown()
    after = Parts(tmp_path)
    after.coordinate(leader_epoch=1)
    finish_loading(after)
    assert beat(after, 1).error is ErrorCode.NONE
    assert beat(after, 2).error is ErrorCode.FENCED_MEMBER_EPOCH


@pytest.fixture
def successor(tmp_path: Path) -> Parts:
    """A new leader that has a consumer group which not all replicas have."""
    before = Parts(tmp_path)
    before.coordinate(isr=(1, 2))
    beat(before, 0)
    before.logs.shutdown()
    after = Parts(tmp_path)
    partition = after.coordinate(leader_epoch=1, isr=(1, 2))
    finish_loading(after)
    assert partition.log.high_watermark == 0
    return after


def test_a_new_leader_tells_nothing_that_the_next_one_may_not_have(successor: Parts) -> None:
    partition = successor.replicas.get(*OFFSETS)
    loaded = partition.log.log_end_offset
    pending = beat(successor, 1)
    assert isinstance(pending, Pending)
    assert not pending.done
    assert partition.log.log_end_offset == loaded + 1
    successor.fetch_as_follower(partition, loaded + 1)
    assert pending.response.error is ErrorCode.NONE
    assert beat(successor, 1).error is ErrorCode.NONE


def test_a_new_leader_writes_nothing_when_its_log_is_replicated(successor: Parts) -> None:
    partition = successor.replicas.get(*OFFSETS)
    loaded = partition.log.log_end_offset
    successor.fetch_as_follower(partition, loaded)
    assert beat(successor, 1).error is ErrorCode.NONE
    assert partition.log.log_end_offset == loaded


Sent = list[tuple[Any, Callable[[StateResult], None]]]


@pytest.fixture
def sent(parts: Parts) -> Sent:
    """The requests to the share coordinator, with the functions that answer them."""
    sent: Sent = []
    persister: Any = SimpleNamespace(send=lambda *row: sent.append(row))
    parts.groups.set_share_persister(persister)
    return sent


def test_share_partitions_begin_when_the_log_has_their_group(parts: Parts, sent: Sent) -> None:
    parts.announce("t")
    parts.waiter.mark_complete()
    partition = parts.coordinate(isr=(1, 2))

    def beat(epoch: int) -> Any:
        names = None if epoch else ["t"]
        heartbeat = ShareHeartbeat("g", "m", epoch, subscribed_names=names)
        coordinator = parts.groups.coordinator
        return parts.groups.call(coordinator.share_heartbeat, heartbeat, lambda result: result)

    pending = beat(0)
    assert not pending.done
    assert not sent
    parts.fetch_as_follower(partition, partition.log.log_end_offset)
    assert pending.response.error is ErrorCode.NONE
    [(request, answered)] = sent
    assert request == InitializeState(SharePartitionKey("g", TOPIC_ID, 0), 1)
    answered(StateResult())
    pending = beat(1)
    parts.fetch_as_follower(partition, partition.log.log_end_offset)
    assert pending.response.assignment == {TOPIC_ID: frozenset({0})}
    assert len(sent) == 1


@pytest.mark.parametrize(
    "other", [ErrorCode.NONE, ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NETWORK_EXCEPTION]
)
@pytest.mark.parametrize("is_first", [False, True])
def test_a_group_goes_on_with_states_of_later_epochs_if_there_are_all(
    parts: Parts, sent: Sent, other: ErrorCode, is_first: bool
) -> None:
    second = topic_id(2)
    parts.announce("t")
    parts.announce("u", topic_id=second)
    parts.waiter.mark_complete()
    parts.coordinate()
    heartbeat = parts.groups.coordinator.share_heartbeat

    def beat(epoch: int) -> Any:
        names = None if epoch else ["t", "u"]
        request = ShareHeartbeat("g", "m", epoch, subscribed_names=names)
        return parts.groups.call(heartbeat, request, lambda result: result)

    beat(0)
    sent.sort(key=lambda row: row[0].key.topic_id == (second if is_first else TOPIC_ID))
    for result in (ErrorCode.FENCED_STATE_EPOCH, other):
        request, answered = sent.pop(0)
        assert request.state_epoch == 1
        answered(StateResult(result))
    for request, answered in sent:
        assert isinstance(request, ReadSummary)
        answered(StateResult(state_epoch=7 if request.key.topic_id == TOPIC_ID else 5))
    assigned = beat(1).assignment
    if other is ErrorCode.NETWORK_EXCEPTION:
        assert not assigned, "no state of one partition"
    else:
        assert assigned == {TOPIC_ID: frozenset({0}), second: frozenset({0})}


def test_a_consumer_fetches_its_offsets_while_those_of_many_groups_expire(parts: Parts) -> None:
    parts.coordinate()
    for number in range(100):
        commit(parts, 1, f"g-{number}")
    retention_ms = parts.config.get_int("offsets.retention.minutes") * 60_000
    parts.clock.now_ms += retention_ms + 1
    commit(parts, 7)
    counts: list[int] = []

    async def fetch() -> None:
        check = asyncio.ensure_future(parts.groups.expire_offsets())
        while not check.done():
            await asyncio.sleep(0)
            assert committed(parts) == 7
            counts.append(parts.groups.coordinator.num_offsets())

    asyncio.run(fetch())
    assert counts[-1] == 1
    assert len({*counts}) > 3
