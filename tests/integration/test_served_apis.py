"""Every API in every version it is served in, asked of a real broker over a socket.

What a user would lose: a client that negotiates an old version gets an answer in that version,
with the same meaning. The bytes themselves are held against kio in tests/conformance.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_configs,
    describe_log_dirs,
    describe_user_scram_credentials,
    elect_leaders,
    fetch,
    incremental_alter_configs,
    join_group,
    leave_group,
    list_config_resources,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    request_class,
    response_class,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    update_features,
)
from kafkapy.record.builder import build_batch
from kafkapy.record.records import iter_records
from kafkapy.server.api.handlers import SERVED
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.wire import RECORDS, Wire
from tests.harness.protocol.served_versions import each_version

TOPIC = "served"
UNKNOWN_ID = Uuid(b"x" * 16)
# Asked of brokers with metrics only: test_client_metrics.py.
TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
# Asked in test_inter_broker.py, test_served_transactions.py, test_served_share_groups.py and
# test_delegation_tokens.py.
ELSEWHERE = TELEMETRY | {
    *(key for key in ApiKey if "SHARE" in key.name),
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}


@pytest.fixture(scope="module")
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    connection = Wire(broker)
    connection.create(TOPIC, 2)
    assert connection.produce(TOPIC).error_code == 0
    yield connection
    connection.close()


def test_every_served_api_is_asked_here() -> None:
    asked = {key for key in ApiKey if f"ApiKey.{key.name})" in Path(__file__).read_text()}
    assert asked >= {ApiKey(key) for key in SERVED} - ELSEWHERE


@each_version(ApiKey.API_VERSIONS)
def test_api_versions(wire: Wire, version: int) -> None:
    request = request_class(ApiKey.API_VERSIONS)(
        client_software_name="wire", client_software_version="1"
    )
    response = wire.ask(request, version)
    ranges = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
    served = {key: row for key, row in SERVED.items() if key not in TELEMETRY}
    assert ranges == {key: (s.min_version, s.max_version) for key, s in served.items()}


@each_version(ApiKey.METADATA)
def test_metadata(wire: Wire, version: int) -> None:
    everything = metadata.MetadataRequest(topics=[] if version == 0 else None)
    named = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=TOPIC)])
    for request in (everything, named):
        response = wire.ask(request, version)
        [topic] = [t for t in response.topics if t.name == TOPIC]
        assert [(p.partition_index, p.leader_id) for p in topic.partitions] == [(0, 0), (1, 0)]
        assert len(response.brokers) == 1
        if version >= 10:
            assert topic.topic_id == wire.topic_ids[TOPIC]


def test_metadata_by_topic_id(wire: Wire) -> None:
    known = metadata.MetadataRequestTopic(topic_id=wire.topic_ids[TOPIC], name=None)
    unknown = metadata.MetadataRequestTopic(topic_id=UNKNOWN_ID, name=None)
    rows = wire.ask(metadata.MetadataRequest(topics=[known, unknown]), 12).topics
    assert [(row.name, row.error_code) for row in rows] == [
        (TOPIC, 0),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_metadata_creates_topics_only_when_asked_to(wire: Wire) -> None:
    for allowed, error in ((False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (True, ErrorCode.NONE)):
        request = metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name="auto")], allow_auto_topic_creation=allowed
        )
        [row] = wire.ask(request, 9).topics
        assert row.error_code == error


@each_version(ApiKey.PRODUCE)
def test_produce(wire: Wire, version: int) -> None:
    before = latest(wire, TOPIC, 1)
    row = wire.produce(TOPIC, version, partition=1)
    assert (row.error_code, row.base_offset) == (0, before)
    assert latest(wire, TOPIC, 1) == before + 3
    values = [r.value for r in iter_records(read(wire, TOPIC, 1, before, 17))]
    assert values == [b"v0", b"v1", b"v2"]


def latest(wire: Wire, topic: str, partition: int) -> int:
    offset: int = look_up(wire, topic, partition, -1, 7).offset
    return offset


def look_up(wire: Wire, topic: str, partition: int, timestamp: int, version: int) -> Any:
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1,
        topics=[
            list_offsets.ListOffsetsTopic(
                name=topic,
                partitions=[
                    list_offsets.ListOffsetsPartition(
                        partition_index=partition, timestamp=timestamp, current_leader_epoch=-1
                    )
                ],
            )
        ],
    )
    return wire.ask(request, version).topics[0].partitions[0]


@each_version(ApiKey.LIST_OFFSETS)
def test_list_offsets(wire: Wire, version: int) -> None:
    if version == 0:
        assert look_up(wire, TOPIC, 0, -2, version).old_style_offsets == [0]
        assert look_up(wire, TOPIC, 0, -1, version).old_style_offsets == [3]
        assert look_up(wire, TOPIC, 0, 1001, version).old_style_offsets == []
        assert look_up(wire, TOPIC, 0, -3, version).error_code == ErrorCode.UNSUPPORTED_VERSION
        return
    assert look_up(wire, TOPIC, 0, -2, version).offset == 0
    assert look_up(wire, TOPIC, 0, -1, version).offset == 3
    found = look_up(wire, TOPIC, 0, 1001, version)
    assert (found.timestamp, found.offset) == (1001, 1)
    beyond = look_up(wire, TOPIC, 0, 5000, version)
    assert (beyond.error_code, beyond.offset) == (0, -1)
    newest = look_up(wire, TOPIC, 0, -3, version)
    expected = (0, 2) if version >= 7 else (ErrorCode.UNSUPPORTED_VERSION, -1)
    assert (newest.error_code, newest.offset) == expected


def fetch_request(wire: Wire, topic: str, partition: int, offset: int, **more: Any) -> Any:
    return fetch.FetchRequest(
        replica_id=-1,
        max_wait_ms=more.pop("max_wait_ms", 0),
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[
            fetch.FetchTopic(
                topic=topic,
                topic_id=wire.topic_ids[topic],
                partitions=[
                    fetch.FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=1 << 20,
                        current_leader_epoch=-1,
                        last_fetched_epoch=-1,
                    )
                ],
            )
        ],
        **more,
    )


def read(wire: Wire, topic: str, partition: int, offset: int, version: int) -> bytes:
    response = wire.ask(fetch_request(wire, topic, partition, offset), version)
    [row] = response.responses[0].partitions
    assert row.error_code == 0
    return bytes(row.records)


@each_version(ApiKey.FETCH)
def test_fetch(wire: Wire, version: int) -> None:
    rows = list(iter_records(read(wire, TOPIC, 0, 0, version)))
    assert [(r.offset, r.key, r.value) for r in rows] == [
        (i, b"k%d" % i, b"v%d" % i) for i in range(3)
    ]
    assert read(wire, TOPIC, 0, 3, version) == b""
    response = wire.ask(fetch_request(wire, TOPIC, 0, 99), version)
    assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("version", [7, 12, 17])
def test_fetch_sessions(wire: Wire, version: int) -> None:
    first = wire.ask(fetch_request(wire, TOPIC, 0, 0, session_id=0, session_epoch=0), version)
    assert first.session_id > 0
    moved = fetch_request(wire, TOPIC, 0, 3, session_id=first.session_id, session_epoch=1)
    assert wire.ask(moved, version).responses == []
    again = fetch_request(wire, TOPIC, 0, 3, session_id=first.session_id, session_epoch=1)
    assert wire.ask(again, version).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_fetch_waits_for_records_and_wakes(wire: Wire, broker: BrokerProcess) -> None:
    wire.create("waits")
    other = Wire(broker)
    other.topic_ids = wire.topic_ids
    request = fetch_request(other, "waits", 0, 0, max_wait_ms=15_000)
    other._socket.sendall(encode_request(request, 17, 1, "wire"))
    assert wire.produce("waits").error_code == 0
    size = int.from_bytes(other._stream.read(4), "big")
    _, response = decode_response(fetch.FetchResponse, 17, memoryview(other._stream.read(size)))
    other.close()
    records = response.responses[0].partitions[0].records
    assert [r.value for r in iter_records(bytes(records or b""))] == [b"v0", b"v1", b"v2"]


@each_version(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def test_offset_for_leader_epoch(wire: Wire, version: int) -> None:
    request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            offset_for_leader_epoch.OffsetForLeaderTopic(
                topic=TOPIC,
                partitions=[
                    offset_for_leader_epoch.OffsetForLeaderPartition(
                        partition=0, current_leader_epoch=-1, leader_epoch=0
                    )
                ],
            )
        ],
    )
    [row] = wire.ask(request, version).topics[0].partitions
    assert (row.error_code, row.end_offset) == (0, 3)


@each_version(ApiKey.CREATE_TOPICS)
def test_create_topics(wire: Wire, version: int) -> None:
    def ask(name: str, partitions: int = 2) -> Any:
        request = create_topics.CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(
                    name=name, num_partitions=partitions, replication_factor=1
                )
            ],
            timeout_ms=10_000,
        )
        return wire.ask(request, version).topics[0]

    made = ask(f"created-{version}")
    assert made.error_code == 0
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (2, 1)
        assert "retention.ms" in [config.name for config in made.configs]
    if version >= 7:
        assert made.topic_id != ZERO_UUID
    assert ask(f"created-{version}").error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert ask("bad/name").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert ask(f"none-{version}", 0).error_code == ErrorCode.INVALID_PARTITIONS


@each_version(ApiKey.DELETE_TOPICS)
def test_delete_topics(wire: Wire, version: int) -> None:
    name = f"deleted-{version}"
    wire.create(name)
    request = delete_topics.DeleteTopicsRequest(timeout_ms=10_000)
    if version >= 6:
        request.topics = [
            delete_topics.DeleteTopicState(name=None, topic_id=wire.topic_ids[name]),
            delete_topics.DeleteTopicState(name="not-there"),
        ]
    else:
        request.topic_names = [name, "not-there"]
    rows = wire.ask(request, version).responses
    assert [(row.name, row.error_code) for row in rows] == [
        (name, 0),
        ("not-there", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    everything = wire.ask(metadata.MetadataRequest(topics=None), 9)
    assert name not in [topic.name for topic in everything.topics]


@each_version(ApiKey.CREATE_PARTITIONS)
def test_create_partitions(wire: Wire, version: int) -> None:
    name = f"grown-{version}"
    wire.create(name)

    def grow(count: int) -> int:
        request = create_partitions.CreatePartitionsRequest(
            topics=[
                create_partitions.CreatePartitionsTopic(name=name, count=count, assignments=None)
            ],
            timeout_ms=10_000,
        )
        code: int = wire.ask(request, version).results[0].error_code
        return code

    assert grow(3) == 0
    wire.topic_ids.setdefault(name, ZERO_UUID)
    assert wire.produce(name, partition=2).error_code == 0
    assert grow(2) == ErrorCode.INVALID_PARTITIONS


def reassign(wire: Wire, version: int, *targets: tuple[str, list[int] | None]) -> Any:
    request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
        topics=[
            alter_partition_reassignments.ReassignableTopic(
                name=name,
                partitions=[
                    alter_partition_reassignments.ReassignablePartition(
                        partition_index=0, replicas=replicas
                    )
                ],
            )
            for name, replicas in targets
        ]
    )
    return wire.ask(request, version)


@each_version(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
def test_alter_partition_reassignments(wire: Wire, version: int) -> None:
    wire.create("stays")
    wire.create("moved")
    response = reassign(wire, version, ("stays", [0]), ("moved", [7]), ("not-there", [0]))
    assert response.error_code == 0
    rows = {topic.name: topic.partitions[0] for topic in response.responses}
    assert {name: row.error_code for name, row in rows.items()} == {
        "stays": ErrorCode.NONE,
        "moved": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "not-there": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert rows["stays"].error_message is None
    assert rows["moved"].error_message == (
        "Replica assignment has brokers that are not alive. Replica list: 7, live broker list: 0"
    )
    [cancelled] = reassign(wire, version, ("stays", None)).responses
    assert cancelled.partitions[0].error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert wire.produce("stays").error_code == 0, "the leader leads on"


@each_version(ApiKey.LIST_PARTITION_REASSIGNMENTS)
def test_list_partition_reassignments(wire: Wire, version: int) -> None:
    asked = list_partition_reassignments.ListPartitionReassignmentsTopics(
        name=TOPIC, partition_indexes=[0, 1, 9]
    )
    for topics in (None, [], [asked]):
        request = list_partition_reassignments.ListPartitionReassignmentsRequest(topics=topics)
        response = wire.ask(request, version)
        assert (response.error_code, response.topics) == (0, [])


@each_version(ApiKey.ELECT_LEADERS)
def test_elect_leaders(wire: Wire, version: int) -> None:
    for election_type in (0, 1) if version >= 1 else (0,):
        request = elect_leaders.ElectLeadersRequest(
            election_type=election_type,
            topic_partitions=[
                elect_leaders.TopicPartitions(topic=TOPIC, partitions=[0, 1]),
                elect_leaders.TopicPartitions(topic="not-there", partitions=[0]),
            ],
        )
        response = wire.ask(request, version)
        assert response.error_code == 0
        codes = {
            (topic.topic, row.partition_id): row.error_code
            for topic in response.replica_election_results
            for row in topic.partition_result
        }
        assert codes == {
            (TOPIC, 0): ErrorCode.ELECTION_NOT_NEEDED,
            (TOPIC, 1): ErrorCode.ELECTION_NOT_NEEDED,
            ("not-there", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        request.topic_partitions = None
        assert wire.ask(request, version).replica_election_results == []


@each_version(ApiKey.DELETE_RECORDS)
def test_delete_records(wire: Wire, version: int) -> None:
    name = f"trimmed-{version}"
    wire.create(name)
    wire.produce(name)

    def trim(offset: int) -> Any:
        request = delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        delete_records.DeleteRecordsPartition(partition_index=0, offset=offset)
                    ],
                )
            ],
            timeout_ms=10_000,
        )
        return wire.ask(request, version).topics[0].partitions[0]

    assert (trim(2).error_code, trim(2).low_watermark) == (0, 2)
    assert look_up(wire, name, 0, -2, 7).offset == 2
    assert trim(9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@each_version(ApiKey.INIT_PRODUCER_ID)
def test_init_producer_id(wire: Wire, version: int) -> None:
    def ask(transactional_id: str | None = None) -> Any:
        request = request_class(ApiKey.INIT_PRODUCER_ID)(
            transactional_id=transactional_id,
            transaction_timeout_ms=1000,
            producer_id=-1,
            producer_epoch=-1,
        )
        return wire.ask(request, version)

    first, second = ask(), ask()
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert second.producer_id > first.producer_id >= 0
    assert ask("").error_code == ErrorCode.INVALID_REQUEST


def describe(wire: Wire, kind: int, name: str, version: int = 4) -> Any:
    request = describe_configs.DescribeConfigsRequest(
        resources=[
            describe_configs.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
        ],
        include_synonyms=True,
    )
    return wire.ask(request, version).results[0]


@each_version(ApiKey.DESCRIBE_CONFIGS)
def test_describe_configs(wire: Wire, version: int) -> None:
    topic = {c.name: c for c in describe(wire, 2, TOPIC, version).configs}
    assert topic["cleanup.policy"].value == "delete"
    broker = {c.name: c for c in describe(wire, 4, "0", version).configs}
    assert broker["offsets.topic.num.partitions"].value == "4"
    if version >= 1:
        assert broker["offsets.topic.num.partitions"].config_source == 4
    missing = describe(wire, 2, "not-there", version)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(wire, 4, "7", version).error_code == ErrorCode.INVALID_REQUEST


@each_version(ApiKey.ALTER_CONFIGS)
def test_alter_configs(wire: Wire, version: int) -> None:
    name = f"altered-{version}"
    wire.create(name, retention_ms="1000")

    def alter(**configs: str) -> int:
        request = alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=2,
                    resource_name=name,
                    configs=[
                        alter_configs.AlterableConfig(name=k.replace("_", "."), value=v)
                        for k, v in configs.items()
                    ],
                )
            ]
        )
        code: int = wire.ask(request, version).responses[0].error_code
        return code

    assert alter(segment_bytes="100000") == 0
    now = {c.name: c.value for c in describe(wire, 2, name).configs}
    assert (now["segment.bytes"], now["retention.ms"]) == ("100000", "604800000")
    assert alter(segment_bytes="many") == ErrorCode.INVALID_CONFIG


@each_version(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def test_incremental_alter_configs(wire: Wire, version: int) -> None:
    name = f"changed-{version}"
    wire.create(name, retention_ms="1000")

    def change(key: str, operation: int, value: str | None) -> int:
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=2,
                    resource_name=name,
                    configs=[
                        incremental_alter_configs.AlterableConfig(
                            name=key, config_operation=operation, value=value
                        )
                    ],
                )
            ]
        )
        code: int = wire.ask(request, version).responses[0].error_code
        return code

    assert change("cleanup.policy", 2, "compact") == 0
    assert change("retention.ms", 1, None) == 0
    now = {c.name: c.value for c in describe(wire, 2, name).configs}
    assert (now["cleanup.policy"], now["retention.ms"]) == ("delete,compact", "604800000")
    assert change("no.such.key", 0, "1") == ErrorCode.INVALID_CONFIG
    assert change("retention.ms", 9, "1") == ErrorCode.INVALID_REQUEST


@each_version(ApiKey.ALTER_REPLICA_LOG_DIRS)
def test_alter_replica_log_dirs(wire: Wire, broker: BrokerProcess, version: int) -> None:
    def move(path: str, *topics: str) -> list[int]:
        rows = [
            alter_replica_log_dirs.AlterReplicaLogDirTopic(name=name, partitions=[0])
            for name in topics
        ]
        wanted = [alter_replica_log_dirs.AlterReplicaLogDir(path=path, topics=rows)]
        request = alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=wanted)
        results = wire.ask(request, version).results
        assert [result.topic_name for result in results] == list(topics)
        return [result.partitions[0].error_code for result in results]

    assert move(str(broker.log_dir), TOPIC, "absent") == [
        ErrorCode.NONE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
    ]
    assert move("/nowhere", TOPIC) == [ErrorCode.LOG_DIR_NOT_FOUND]


@each_version(ApiKey.DESCRIBE_LOG_DIRS)
def test_describe_log_dirs(wire: Wire, broker: BrokerProcess, version: int) -> None:
    request = describe_log_dirs.DescribeLogDirsRequest(
        topics=[describe_log_dirs.DescribableLogDirTopic(topic=TOPIC, partitions=[0])]
    )
    [directory] = wire.ask(request, version).results
    assert directory.log_dir == str(broker.log_dir)
    [topic] = directory.topics
    [partition] = topic.partitions
    assert partition.partition_size == len(build_batch(RECORDS))
    if version >= 4:
        assert directory.total_bytes > 0


@each_version(ApiKey.DESCRIBE_CLUSTER)
def test_describe_cluster(wire: Wire, version: int) -> None:
    response = wire.ask(request_class(ApiKey.DESCRIBE_CLUSTER)(), version)
    assert (response.error_code, response.controller_id) == (0, 0)
    assert [b.broker_id for b in response.brokers] == [0]
    assert len(response.cluster_id) == 22


@each_version(ApiKey.UPDATE_FEATURES)
def test_update_features(wire: Wire, version: int) -> None:
    request = update_features.UpdateFeaturesRequest(
        feature_updates=[update_features.FeatureUpdateKey(feature="nonsense", max_version_level=1)]
    )
    response = wire.ask(request, version)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Broker 0 does not support this feature." in response.error_message


@each_version(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def test_describe_topic_partitions(wire: Wire, version: int) -> None:
    request = request_class(ApiKey.DESCRIBE_TOPIC_PARTITIONS)(response_partition_limit=1)
    response = wire.ask(request, version)
    assert sum(len(topic.partitions) for topic in response.topics) == 1
    assert response.next_cursor is not None


@each_version(ApiKey.FIND_COORDINATOR)
def test_find_coordinator(wire: Wire, version: int) -> None:
    request = request_class(ApiKey.FIND_COORDINATOR)(
        key="g", key_type=0, coordinator_keys=["g", "h"]
    )
    response = wire.ask(request, version)
    rows = response.coordinators if version >= 4 else [response]
    assert [(row.error_code, row.node_id) for row in rows] == [(0, 0)] * len(rows)
    request.key_type = 1
    if version >= 1:
        response = wire.ask(request, version)
        rows = response.coordinators if version >= 4 else [response]
        assert [(row.error_code, row.node_id) for row in rows] == [(0, 0)] * len(rows)


class Member:
    """One member of a group, in one version of each API."""

    def __init__(self, wire: Wire, group: str) -> None:
        self.wire = wire
        self.group = group
        self.member_id = ""
        self.generation = -1

    def join(self, version: int) -> Any:
        request = join_group.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"meta")],
        )
        response = self.wire.ask(request, version)
        self.member_id = response.member_id
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return self.join(version)
        self.generation = response.generation_id
        return response

    def sync(self, version: int) -> Any:
        request = sync_group.SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                sync_group.SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"mine")
            ],
        )
        return self.wire.ask(request, version)

    def leave(self, version: int) -> Any:
        request = leave_group.LeaveGroupRequest(
            group_id=self.group,
            member_id=self.member_id,
            members=[leave_group.MemberIdentity(member_id=self.member_id)],
        )
        return self.wire.ask(request, version)

    def ask(self, key: ApiKey, version: int, **more: Any) -> Any:
        request = request_class(key)(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            **more,
        )
        return self.wire.ask(request, version)


@pytest.fixture
def member(wire: Wire, request: pytest.FixtureRequest) -> Iterator[Member]:
    made = Member(wire, f"group-{request.node.name}")
    yield made
    made.leave(5)


@each_version(ApiKey.JOIN_GROUP)
def test_join_group(member: Member, version: int) -> None:
    joined = member.join(version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.leader == joined.member_id
    assert [(m.member_id, bytes(m.metadata)) for m in joined.members] == [
        (member.member_id, b"meta")
    ]


@each_version(ApiKey.SYNC_GROUP)
def test_sync_group(member: Member, version: int) -> None:
    member.join(9)
    synced = member.sync(version)
    assert (synced.error_code, bytes(synced.assignment)) == (0, b"mine")


@each_version(ApiKey.HEARTBEAT)
def test_heartbeat(member: Member, version: int) -> None:
    member.join(9)
    member.sync(5)
    assert member.ask(ApiKey.HEARTBEAT, version).error_code == 0
    member.generation += 1
    assert member.ask(ApiKey.HEARTBEAT, version).error_code == ErrorCode.ILLEGAL_GENERATION


@each_version(ApiKey.LEAVE_GROUP)
def test_leave_group(member: Member, version: int) -> None:
    member.join(9)
    member.sync(5)
    assert member.leave(version).error_code == 0
    gone = member.leave(version)
    code = gone.members[0].error_code if version >= 3 else gone.error_code
    assert code == ErrorCode.UNKNOWN_MEMBER_ID


def commit(wire: Wire, group: str, offset: int, version: int, **more: Any) -> list[int]:
    request = offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=more.get("generation", -1),
        member_id=more.get("member_id", ""),
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name=name,
                topic_id=wire.topic_ids.get(name, UNKNOWN_ID),
                partitions=[
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=offset, committed_metadata="note"
                    )
                ],
            )
            for name in (TOPIC, "not-there")
        ],
    )
    topics = wire.ask(request, version).topics
    return [p.error_code for topic in topics for p in topic.partitions]


def committed(wire: Wire, group: str, version: int) -> Any:
    request = offset_fetch.OffsetFetchRequest(group_id=group)
    if version >= 8:
        request.groups = [
            offset_fetch.OffsetFetchRequestGroup(
                group_id=group,
                topics=[
                    offset_fetch.OffsetFetchRequestTopics(
                        name=TOPIC, topic_id=wire.topic_ids[TOPIC], partition_indexes=[0, 1]
                    )
                ],
            )
        ]
        rows = wire.ask(request, version).groups[0].topics[0].partitions
    else:
        request.topics = [
            offset_fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0, 1])
        ]
        rows = wire.ask(request, version).topics[0].partitions
    return {row.partition_index: (row.committed_offset, row.metadata) for row in rows}


@each_version(ApiKey.OFFSET_COMMIT)
def test_offset_commit(wire: Wire, version: int) -> None:
    group = f"commits-{version}"
    codes = commit(wire, group, 7, version)
    by_id = version >= 10
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [ErrorCode.NONE, unknown]
    assert committed(wire, group, 9)[0] == (7, "note")


@each_version(ApiKey.OFFSET_FETCH)
def test_offset_fetch(wire: Wire, version: int) -> None:
    commit(wire, "fetches", 5, 9)
    assert committed(wire, "fetches", version) == {0: (5, "note"), 1: (-1, "")}


@each_version(ApiKey.OFFSET_DELETE)
def test_offset_delete(wire: Wire, version: int) -> None:
    commit(wire, "forgets", 5, 9)
    request = offset_delete.OffsetDeleteRequest(
        group_id="forgets",
        topics=[
            offset_delete.OffsetDeleteRequestTopic(
                name=TOPIC,
                partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)],
            )
        ],
    )
    assert wire.ask(request, version).topics[0].partitions[0].error_code == 0
    assert committed(wire, "forgets", 9)[0] == (-1, "")


@each_version(ApiKey.LIST_GROUPS)
def test_list_groups(wire: Wire, version: int) -> None:
    commit(wire, "listed", 1, 9)
    rows = {g.group_id: g for g in wire.ask(request_class(ApiKey.LIST_GROUPS)(), version).groups}
    assert "listed" in rows
    if version >= 4:
        assert rows["listed"].group_state == "Empty"


@each_version(ApiKey.DESCRIBE_GROUPS)
def test_describe_groups(member: Member, version: int) -> None:
    member.join(9)
    member.sync(5)
    request = request_class(ApiKey.DESCRIBE_GROUPS)(groups=[member.group, "not-there"])
    known, unknown = member.wire.ask(request, version).groups
    assert (known.error_code, known.group_state, known.protocol_data) == (0, "Stable", "range")
    assert [m.member_id for m in known.members] == [member.member_id]
    assert bytes(known.members[0].member_assignment) == b"mine"
    assert (unknown.error_code, unknown.group_state) == (0, "Dead")


@each_version(ApiKey.DELETE_GROUPS)
def test_delete_groups(wire: Wire, member: Member, version: int) -> None:
    member.join(9)
    commit(wire, "doomed", 1, 9)
    request = request_class(ApiKey.DELETE_GROUPS)(
        groups_names=["doomed", "not-there", member.group]
    )
    rows = {r.group_id: r.error_code for r in wire.ask(request, version).results}
    assert rows == {
        "doomed": ErrorCode.NONE,
        "not-there": ErrorCode.GROUP_ID_NOT_FOUND,
        member.group: ErrorCode.NON_EMPTY_GROUP,
    }
    assert committed(wire, "doomed", 9)[0] == (-1, "")


def consumer_heartbeat(wire: Wire, group: str, version: int, **fields: Any) -> Any:
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group, member_id="me", **fields
    )
    return wire.ask(request, version)


def join_consumers(wire: Wire, group: str, version: int, *topics: str) -> Any:
    return consumer_heartbeat(
        wire,
        group,
        version,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[*topics],
        topic_partitions=[],
    )


@each_version(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def test_consumer_group_heartbeat(wire: Wire, version: int) -> None:
    group = f"consumers-{version}"
    joined = join_consumers(wire, group, version, TOPIC)
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "me", 1)
    (assigned,) = joined.assignment.topic_partitions
    assert assigned.partitions == [0, 1]
    stays = consumer_heartbeat(wire, group, version, member_epoch=1)
    assert (stays.error_code, stays.member_epoch, stays.assignment) == (0, 1, None)
    assert stays.heartbeat_interval_ms == 5000
    fenced = consumer_heartbeat(wire, group, version, member_epoch=7)
    assert fenced.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert "greater member epoch (7)" in fenced.error_message
    assert commit(wire, group, 5, 9, member_id="me", generation=1)[0] == 0
    assert commit(wire, group, 5, 9, member_id="me", generation=0)[0] == (
        ErrorCode.STALE_MEMBER_EPOCH
    )
    left = consumer_heartbeat(wire, group, version, member_epoch=-1)
    assert (left.error_code, left.member_epoch) == (0, -1)
    if version >= 1:
        bad = consumer_heartbeat(
            wire,
            group,
            version,
            rebalance_timeout_ms=1,
            subscribed_topic_regex="a(",
            topic_partitions=[],
        )
        assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@each_version(ApiKey.LIST_CONFIG_RESOURCES)
def test_list_config_resources(wire: Wire, version: int) -> None:
    def listed(*kinds: int) -> set[tuple[int, str]]:
        request = list_config_resources.ListConfigResourcesRequest(resource_types=[*kinds])
        rows = wire.ask(request, version).config_resources
        return {(row.resource_type, row.resource_name) for row in rows}

    for kind, key, value in ((16, "metrics", "*"), (32, "consumer.session.timeout.ms", "50000")):
        configs = [incremental_alter_configs.AlterableConfig(name=key, value=value)]
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=kind, resource_name="listed", configs=configs
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
        [row] = wire.ask(request, 1).responses
        assert row.error_code == 0, row.error_message
    if version == 0:
        assert listed() == {(16, "listed")}
    else:
        assert listed(16, 32) == {(16, "listed"), (32, "listed")}
        assert {(2, TOPIC), (4, "0"), (8, "0")} < listed()


@each_version(ApiKey.CONSUMER_GROUP_DESCRIBE)
def test_consumer_group_describe(wire: Wire, version: int) -> None:
    group = f"described-{version}"
    join_consumers(wire, group, version, TOPIC, "not-there")
    request = request_class(ApiKey.CONSUMER_GROUP_DESCRIBE)(group_ids=[group, "unknown"])
    known, unknown = wire.ask(request, version).groups
    assert (known.error_code, known.group_state, known.assignor_name) == (0, "Stable", "uniform")
    assert known.group_epoch == known.assignment_epoch == 1
    (member,) = known.members
    assert (member.member_id, member.member_epoch) == ("me", 1)
    assert member.subscribed_topic_names == ["not-there", TOPIC]
    assert member.assignment == member.target_assignment
    (assigned,) = member.assignment.topic_partitions
    assert (assigned.topic_name, assigned.partitions) == (TOPIC, [0, 1])
    assert member.member_type == (1 if version >= 1 else -1)
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert unknown.error_message == "Group unknown not found."
    consumer_heartbeat(wire, group, version, member_epoch=-1)


def test_an_api_version_that_is_too_new_is_answered_in_v0(wire: Wire) -> None:
    body = struct.pack(">hhihb", 18, 99, 77, -1, 0)
    wire._socket.sendall(len(body).to_bytes(4, "big") + body)
    size = int.from_bytes(wire._stream.read(4), "big")
    correlation_id, response = decode_response(
        response_class(ApiKey.API_VERSIONS), 0, memoryview(wire._stream.read(size))
    )
    assert (correlation_id, response.error_code) == (77, ErrorCode.UNSUPPORTED_VERSION)
    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [(18, 0, 5)]


@each_version(ApiKey.ALLOCATE_PRODUCER_IDS)
def test_allocate_producer_ids(wire: Wire, version: int) -> None:
    def ask(broker_id: int) -> Any:
        epoch = 1 << 62  # later than whatever this broker registered with
        return wire.ask(
            request_class(ApiKey.ALLOCATE_PRODUCER_IDS)(broker_id=broker_id, broker_epoch=epoch),
            version,
        )

    first, second = ask(0), ask(0)
    assert (first.error_code, first.producer_id_len) == (ErrorCode.NONE, 1000)
    assert second.producer_id_start == first.producer_id_start + 1000
    assert ask(7).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


@each_version(ApiKey.SASL_HANDSHAKE)
def test_sasl_handshake_where_nobody_logs_in(wire: Wire, version: int) -> None:
    response = wire.ask(sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"), version)
    assert (response.error_code, response.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])


@each_version(ApiKey.SASL_AUTHENTICATE)
def test_sasl_authenticate_where_nobody_logs_in(wire: Wire, version: int) -> None:
    response = wire.ask(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=b""), version)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert response.error_message == (
        "SaslAuthenticate request received after successful authentication"
    )


@each_version(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
def test_alter_user_scram_credentials(wire: Wire, version: int) -> None:
    given = [("alice", 1), ("bob", 3)]
    upsertions = [
        alter_user_scram_credentials.ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=4096, salt=b"s", salted_password=b"p"
        )
        for name, mechanism in given
    ]
    request = alter_user_scram_credentials.AlterUserScramCredentialsRequest(upsertions=upsertions)
    rows = {row.user: row.error_code for row in wire.ask(request, version).results}
    assert rows == {"alice": 0, "bob": ErrorCode.UNSUPPORTED_SASL_MECHANISM}


@each_version(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
def test_describe_user_scram_credentials(wire: Wire, version: int) -> None:
    users = [describe_user_scram_credentials.UserName(name=name) for name in ("alice", "bob")]
    request = describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=users)
    found, missing = wire.ask(request, version).results
    assert [(info.mechanism, info.iterations) for info in found.credential_infos] == [(1, 4096)]
    assert missing.error_code == ErrorCode.RESOURCE_NOT_FOUND
    everyone = describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=None)
    assert [row.user for row in wire.ask(everyone, version).results] == ["alice"]


@each_version(ApiKey.DESCRIBE_CLIENT_QUOTAS)
def test_describe_client_quotas(wire: Wire, version: int) -> None:
    def component(kind: str) -> describe_client_quotas.ComponentData:
        return describe_client_quotas.ComponentData(entity_type=kind, match_type=2)

    for kind, error, entries in (("user", 0, []), ("x", ErrorCode.UNSUPPORTED_VERSION, None)):
        request = describe_client_quotas.DescribeClientQuotasRequest(components=[component(kind)])
        response = wire.ask(request, version)
        assert (response.error_code, response.entries) == (error, entries)


@each_version(ApiKey.ALTER_CLIENT_QUOTAS)
def test_alter_client_quotas(wire: Wire, version: int) -> None:
    def entry(kind: str, remove: bool) -> alter_client_quotas.EntryData:
        return alter_client_quotas.EntryData(
            entity=[alter_client_quotas.EntityData(entity_type=kind, entity_name="q")],
            ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1e9, remove=remove)],
        )

    for remove in (False, True):
        request = alter_client_quotas.AlterClientQuotasRequest(
            entries=[entry("user", remove), entry("group", remove)]
        )
        rows = wire.ask(request, version).entries
        assert [row.error_code for row in rows] == [0, ErrorCode.INVALID_REQUEST]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A broker with an authorizer, asked by a super user."""
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with BrokerProcess(tmp_path_factory.mktemp("guarded") / "logs", settings) as broker:
        connection = Wire(broker)
        yield connection
        connection.close()


CREATE = create_acls.CreateAclsRequest(
    creations=[
        create_acls.AclCreation(
            resource_type=2,
            resource_name=name,
            principal="User:a",
            host="*",
            operation=3,
            permission_type=3,
        )
        for name in ("t", "")
    ]
)
OF_TOPIC = {
    "resource_type_filter": 2,
    "resource_name_filter": "t",
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
DESCRIBE = describe_acls.DescribeAclsRequest(**OF_TOPIC)
DELETE = delete_acls.DeleteAclsRequest(filters=[delete_acls.DeleteAclsFilter(**OF_TOPIC)])


@each_version(ApiKey.CREATE_ACLS)
def test_create_acls(wire: Wire, guarded: Wire, version: int) -> None:
    codes = [row.error_code for row in guarded.ask(CREATE, version).results]
    assert codes == [0, ErrorCode.INVALID_REQUEST]
    for row in wire.ask(CREATE, version).results:
        assert row.error_code == ErrorCode.SECURITY_DISABLED
        assert row.error_message == "No Authorizer is configured."


@each_version(ApiKey.DESCRIBE_ACLS)
def test_describe_acls(wire: Wire, guarded: Wire, version: int) -> None:
    guarded.ask(CREATE, version)
    [resource] = guarded.ask(DESCRIBE, version).resources
    assert (resource.resource_type, resource.resource_name, resource.pattern_type) == (2, "t", 3)
    [acl] = resource.acls
    assert (acl.principal, acl.host, acl.operation, acl.permission_type) == ("User:a", "*", 3, 3)
    refused = wire.ask(DESCRIBE, version)
    assert refused.error_code == ErrorCode.SECURITY_DISABLED
    assert refused.error_message == "No Authorizer is configured on the broker"
    unknown = describe_acls.DescribeAclsRequest(**{**OF_TOPIC, "operation": 99})
    assert guarded.ask(unknown, version).error_code == ErrorCode.INVALID_REQUEST


@each_version(ApiKey.DELETE_ACLS)
def test_delete_acls(wire: Wire, guarded: Wire, version: int) -> None:
    guarded.ask(CREATE, version)
    for expected in (["t"], []):
        [result] = guarded.ask(DELETE, version).filter_results
        assert result.error_code == 0
        assert [row.resource_name for row in result.matching_acls] == expected
    [refused] = wire.ask(DELETE, version).filter_results
    assert refused.error_code == ErrorCode.SECURITY_DISABLED
    assert refused.error_message == "No Authorizer is configured."
