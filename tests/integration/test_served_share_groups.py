"""Every API of share groups in every version it is served in, asked of a real broker; and requests
that it refuses, in Kafka's codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.admin.errors import api_error
from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import (
    delete_share_group_offsets,
    delete_share_group_state,
    describe_share_group_offsets,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    write_share_group_state,
)
from kafkapy.protocol.schema import Message
from tests.harness.processes import share_wire
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.wire import RECORDS, Wire
from tests.harness.protocol import group_refusals, share_refusals
from tests.harness.protocol.served_versions import each_version

TOPIC = "shares"
LAST = len(RECORDS) - 1
RECORDED = {
    **group_refusals.recorded(share_refusals.DATA),
    # Kafka takes it, and fails with UNKNOWN_SERVER_ERROR.
    "negative offset": ["NONE", None, "INVALID_REQUEST", None],
    "fetch of an unknown topic": ["NONE", None, "UNKNOWN_TOPIC_ID", None, "NONE", None],
}
ACCEPT, RELEASE, RENEW = 1, 2, 4


@pytest.fixture(scope="module")
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    connection = Wire(broker)
    connection.create(TOPIC)
    assert connection.produce(TOPIC).error_code == 0
    wait_until(lambda: share_wire.has_coordinators(connection, TOPIC, "g"), "the coordinators")
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def refusals(wire: Wire) -> dict[str, list[Any]]:
    def ask(version: int, message: Message) -> Message:
        answer: Message = wire.ask(message, version)
        return answer

    return share_refusals.answers(ask, TOPIC, wire.topic_ids[TOPIC])


@pytest.mark.parametrize("case", share_refusals.CASES)
def test_a_refusal_is_that_of_apache_kafka(case: str, refusals: dict[str, list[Any]]) -> None:
    """The codes; and the words where Kafka has more to say than clients know by the code."""
    ours, recorded = refusals[case], RECORDED[case]
    codes = [ErrorCode[name] for name in recorded[::2]]
    assert [ErrorCode[name] for name in ours[::2]] == codes
    for code, said, words in zip(codes, ours[1::2], recorded[1::2], strict=True):
        assert words in (None, said or api_error(code, None).message)


def alter(wire: Wire, group: str, offset: int = 0) -> Any:
    return share_wire.alter(wire, TOPIC, group, offset)


def heartbeat(wire: Wire, group: str, epoch: int, *topics: str) -> Any:
    request = share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=group,
        member_id="me",
        member_epoch=epoch,
        subscribed_topic_names=[*topics] if topics else None,
    )
    return wire.ask(request, 1)


def fetch(wire: Wire, group: str, epoch: int, version: int, wait_ms: int = 10_000) -> Any:
    return share_wire.fetch(wire, TOPIC, group, epoch, version, wait_ms)


def acknowledge(
    wire: Wire, group: str, epoch: int, version: int, first: int, last: int, kind: int
) -> Any:
    batch = share_acknowledge.AcknowledgementBatch(
        first_offset=first, last_offset=last, acknowledge_types=[kind]
    )
    partition = share_acknowledge.AcknowledgePartition(acknowledgement_batches=[batch])
    topic = share_acknowledge.AcknowledgeTopic(
        topic_id=wire.topic_ids[TOPIC], partitions=[partition]
    )
    request = share_acknowledge.ShareAcknowledgeRequest(
        group_id=group,
        member_id="me",
        share_session_epoch=epoch,
        is_renew_ack=kind == RENEW and version >= 2,
        topics=[topic],
    )
    return wire.ask(request, version)


def outcome(response: Any) -> int:
    [topic] = response.responses
    [row] = topic.partitions
    return int(row.error_code)


def test_a_member_joins_and_is_described(wire: Wire) -> None:
    """ApiKey.SHARE_GROUP_HEARTBEAT and ApiKey.SHARE_GROUP_DESCRIBE."""
    joined = heartbeat(wire, "members", 0, TOPIC)
    assert (joined.error_code, joined.member_id, joined.heartbeat_interval_ms) == (0, "me", 5000)
    epoch = joined.member_epoch
    assigned: list[Any] = []

    def is_assigned() -> bool:
        nonlocal epoch
        stays = heartbeat(wire, "members", epoch)
        epoch = stays.member_epoch
        if stays.assignment is not None:
            assigned[:] = stays.assignment.topic_partitions
        return bool(assigned)

    wait_until(is_assigned, "the partition is assigned")
    assert assigned[0].partitions == [0]
    assert heartbeat(wire, "members", 99).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert heartbeat(wire, "unknown", 9).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert heartbeat(wire, "members", 0).error_code == ErrorCode.INVALID_REQUEST
    assert alter(wire, "members").error_code == ErrorCode.NON_EMPTY_GROUP
    request = share_group_describe.ShareGroupDescribeRequest(group_ids=["members", "unknown"])
    known, unknown = wire.ask(request, 1).groups
    assert (known.error_code, known.group_state, known.assignor_name) == (0, "Stable", "simple")
    [member] = known.members
    assert (member.member_id, member.subscribed_topic_names) == ("me", [TOPIC])
    assert member.assignment.topic_partitions[0].topic_name == TOPIC
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND


@each_version(ApiKey.SHARE_FETCH)
def test_records_are_fetched_and_acknowledged(wire: Wire, version: int) -> None:
    """ApiKey.SHARE_FETCH and ApiKey.SHARE_ACKNOWLEDGE."""
    group = f"fetchers-{version}"
    assert outcome(alter(wire, group)) == 0
    [topic] = fetch(wire, group, 0, version).responses
    [row] = topic.partitions
    assert row.error_code == row.acknowledge_error_code == 0
    assert row.records
    [acquired] = row.acquired_records
    assert (acquired.first_offset, acquired.last_offset, acquired.delivery_count) == (0, LAST, 1)
    beyond = acknowledge(wire, group, 1, version, 0, LAST + 1, ACCEPT)
    assert outcome(beyond) == ErrorCode.INVALID_REQUEST
    renewed = acknowledge(wire, group, 2, version, 0, 0, RENEW)
    assert outcome(renewed) == (0 if version >= 2 else ErrorCode.INVALID_REQUEST)
    assert outcome(acknowledge(wire, group, 3, version, 0, 0, RELEASE)) == 0
    [topic] = fetch(wire, group, 4, version).responses
    [again] = topic.partitions[0].acquired_records
    assert (again.first_offset, again.last_offset, again.delivery_count) == (0, 0, 2)
    assert outcome(acknowledge(wire, group, 5, version, 0, LAST, ACCEPT)) == 0
    closed = acknowledge(wire, group, -1, version, 0, 0, ACCEPT)
    assert outcome(closed) == 0, "what was accepted is not there any more"
    gone = fetch(wire, group, 6, version)
    assert gone.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


@each_version(ApiKey.SHARE_FETCH)
def test_sessions_and_bad_fetches(wire: Wire, version: int) -> None:
    group = f"sessions-{version}"
    unknown = fetch(wire, group, 3, version)
    assert unknown.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    none = acknowledge(wire, group, 1, version, 0, 0, ACCEPT)
    assert none.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert outcome(alter(wire, group)) == 0
    fetch(wire, group, 0, version, wait_ms=0)
    wrong = fetch(wire, group, 7, version)
    assert wrong.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    for first, last, kind in ((1, 0, ACCEPT), (-1, 0, ACCEPT), (0, 0, 9)):
        session = fetch(wire, group, 0, version, wait_ms=0)
        assert session.error_code == 0
        bad = acknowledge(wire, group, 1, version, first, last, kind)
        assert outcome(bad) == ErrorCode.INVALID_REQUEST
    request = share_fetch.ShareFetchRequest(group_id=None, member_id="me")
    assert wire.ask(request, version).error_code == ErrorCode.INVALID_REQUEST


def test_what_is_not_there(wire: Wire) -> None:
    unknown_id = Uuid(bytes(15) + b"\1")
    for topic_id, index, error in (
        (unknown_id, 0, ErrorCode.UNKNOWN_TOPIC_ID),
        (wire.topic_ids[TOPIC], 999, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wire.topic_ids[TOPIC], -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        partition = share_fetch.FetchPartition(partition_index=index)
        topic = share_fetch.FetchTopic(topic_id=topic_id, partitions=[partition])
        request = share_fetch.ShareFetchRequest(
            group_id="g", member_id="me", max_records=1, topics=[topic]
        )
        assert outcome(wire.ask(request, 2)) == error
    fetch(wire, "nobody", 0, 2, wait_ms=0)  # of a group that does not exist
    refused = acknowledge(wire, "nobody", 1, 2, 0, 0, ACCEPT)
    assert outcome(refused) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_member_whose_connection_ends_leaves_nothing_behind(
    wire: Wire, broker: BrokerProcess
) -> None:
    """Its session ends, and what it has acquired is delivered as if for the first time."""
    assert outcome(alter(wire, "gone")) == 0
    other = Wire(broker)
    other.topic_ids |= wire.topic_ids
    [topic] = fetch(other, "gone", 0, 2).responses
    assert topic.partitions[0].acquired_records
    other.close()

    def is_gone() -> bool:
        return fetch(wire, "gone", 9, 2).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND

    wait_until(is_gone, "the session is closed")
    [topic] = fetch(wire, "gone", 0, 2).responses
    [acquired] = topic.partitions[0].acquired_records
    assert (acquired.first_offset, acquired.delivery_count) == (0, 1)


@each_version(ApiKey.WRITE_SHARE_GROUP_STATE)
def test_states(wire: Wire, version: int) -> None:
    """ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY and
    ApiKey.DELETE_SHARE_GROUP_STATE."""
    group, topic_id = f"states-{version}", wire.topic_ids[TOPIC]
    assert outcome(alter(wire, "any")) == 0  # which creates the topic of states

    def ask(module: Any, name: str, row: str, at: int = 0, **fields: Any) -> Any:
        data = module.PartitionData(partition=0, **fields)
        topic = getattr(module, row)(topic_id=topic_id, partitions=[data])
        request = getattr(module, f"{name}Request")(group_id=group, topics=[topic])
        return wire.ask(request, at).results[0].partitions[0]

    def read(leader_epoch: int = 0) -> Any:
        module = read_share_group_state
        return ask(module, "ReadShareGroupState", "ReadStateData", leader_epoch=leader_epoch)

    def write(leader_epoch: int, state: int = 2) -> Any:
        module = write_share_group_state
        batch = module.StateBatch(
            first_offset=6, last_offset=7, delivery_state=state, delivery_count=1
        )
        return ask(
            module,
            "WriteShareGroupState",
            "WriteStateData",
            version,
            state_epoch=1,
            leader_epoch=leader_epoch,
            start_offset=5,
            delivery_complete_count=2,
            state_batches=[batch],
        )

    assert read().error_code == ErrorCode.INVALID_REQUEST
    assert write(0).error_code == ErrorCode.INVALID_REQUEST
    begun = ask(
        initialize_share_group_state,
        "InitializeShareGroupState",
        "InitializeStateData",
        state_epoch=1,
        start_offset=5,
    )
    assert begun.error_code == 0
    assert (read(3).start_offset, read(3).state_epoch) == (5, 1)
    assert write(2).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert write(3, state=9).error_code == ErrorCode.INVALID_REQUEST
    assert write(3).error_code == 0
    [batch] = read(3).state_batches
    assert (batch.first_offset, batch.last_offset, batch.delivery_state) == (6, 7, 2)
    module = read_share_group_state_summary
    found = ask(module, "ReadShareGroupStateSummary", "ReadStateSummaryData", version)
    assert (found.start_offset, found.leader_epoch) == (5, 3)
    assert found.delivery_complete_count == (2 if version >= 1 else -1)
    deleted = ask(delete_share_group_state, "DeleteShareGroupState", "DeleteStateData")
    assert deleted.error_code == 0
    assert read(3).error_code == ErrorCode.INVALID_REQUEST


@each_version(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
def test_offsets(wire: Wire, version: int) -> None:
    """ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.ALTER_SHARE_GROUP_OFFSETS and
    ApiKey.DELETE_SHARE_GROUP_OFFSETS."""
    group = f"offsets-{version}"
    assert outcome(alter(wire, group, offset=1)) == 0
    wanted = describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup
    request = describe_share_group_offsets.DescribeShareGroupOffsetsRequest(
        groups=[wanted(group_id=group, topics=None), wanted(group_id="unknown", topics=None)]
    )
    known, unknown = wire.ask(request, version).groups
    assert (unknown.error_code, unknown.topics) == (0, [])
    [row] = known.topics[0].partitions
    assert (row.error_code, row.start_offset) == (0, 1)
    assert row.lag == (LAST if version >= 1 else -1)
    topics = [
        delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name=name)
        for name in (TOPIC, "not-there")
    ]
    delete = delete_share_group_offsets.DeleteShareGroupOffsetsRequest(
        group_id=group, topics=topics
    )
    done, missing = wire.ask(delete, 0).responses
    assert (done.topic_name, done.error_code) == (TOPIC, 0)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    known, _ = wire.ask(request, version).groups
    assert known.topics == []
