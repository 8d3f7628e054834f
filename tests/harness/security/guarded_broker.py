"""Brokers with an authorizer, ours and Apache Kafka's with the same settings; some users and ACLs;
and a matrix of requests with the answers to every user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kafkapy.client.cluster import Cluster, error_codes
from kafkapy.client.group_offsets import LAST_VERSION_BY_NAME, commit_offsets, commit_request
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import (
    alter_client_quotas,
    controlled_shutdown,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    elect_leaders,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
)
from kafkapy.protocol.messages import (
    alter_partition_reassignments as reassignments,
)
from kafkapy.protocol.schema import Message, Struct
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, ServerProcess, free_port
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import kafkapy

USERS: Final = ("admin", "alice", "bob")
TOPICS: Final = ("open", "pre-a", "pre-secret", "hidden", "all-see")
UNKNOWN_ID: Final = Uuid(bytes(15) + b"u")
AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
# Kafka 3.9 has no versions with topic ids.
_LAST_VERSIONS_BY_NAME: Final = {
    ApiKey.PRODUCE: 12,
    ApiKey.OFFSET_COMMIT: LAST_VERSION_BY_NAME,
    ApiKey.OFFSET_FETCH: LAST_VERSION_BY_NAME,
}
_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"

ENTRIES: Final = (
    "--allow-principal User:alice --operation Write --operation Read --topic open",
    "--allow-principal User:alice --operation Read --topic pre- --resource-pattern-type prefixed",
    "--allow-principal User:alice --operation Read --group team- --resource-pattern-type prefixed",
    "--deny-principal User:alice --operation Read --topic pre-secret",
    "--allow-principal User:bob --operation Describe --topic open",
    "--allow-principal User:bob --operation AlterConfigs --topic hidden",
    "--allow-principal User:bob --operation Create --topic bobs- --resource-pattern-type prefixed",
    "--allow-principal User:* --operation Describe --topic all-see",
    "--allow-principal User:bob --allow-host 10.9.8.7 --operation All --topic hidden",
)


def settings(port: int) -> dict[str, str]:
    """The settings of a SASL_PLAINTEXT listener and of its users."""
    users = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
    return {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_LOGIN} username="admin"'
        f' password="admin-secret" {users};',
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin",
        "connection.failed.authentication.delay.ms": "10",
    }


def ours(directory: Path, zookeeper: str = "", broker_id: int = 0) -> BrokerProcess:
    """A kafkapy broker with an authorizer."""
    port = free_port()
    more = {"zookeeper.connect": zookeeper, "broker.id": str(broker_id)} if zookeeper else {}
    return _at(port, BrokerProcess(directory, {**settings(port), **more}))


def apache(directory: Path, zookeeper: ServerProcess) -> apache_kafka.ApacheBroker:
    """A broker of Apache Kafka with the same settings."""
    port = free_port()
    return _at(port, apache_kafka.ApacheBroker(directory, settings(port), zookeeper))


def _at(port: int, broker: Any) -> Any:
    broker.port, broker.bootstrap_servers = port, f"127.0.0.1:{port}"
    return broker


def login(user: str) -> dict[str, str]:
    """Client properties for a PLAIN login, with Apache Kafka's names."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{_LOGIN} username="{user}" password="{user}-secret";',
    }


def librdkafka(broker: ServerProcess, user: str) -> dict[str, Any]:
    """librdkafka's configuration."""
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
        **QUIET,
    }


def acls(broker: ServerProcess, directory: Path, words: str, user: str = "admin") -> Any:
    """Run `kafkapy acls <words>` as a user."""
    config = str(login_file(directory, user))
    servers = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", config)
    return kafkapy("acls", *servers, *words.split())


def login_file(directory: Path, user: str) -> Path:
    """Write the client properties of a login to a file."""
    config = directory / f"{user}.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in login(user).items()))
    return config


def cluster_of(broker: ServerProcess, user: str) -> Cluster:
    """A client of ours, logged in."""
    return Cluster(broker.bootstrap_servers, login(user))


def prepare(broker: ServerProcess, directory: Path) -> None:
    """Create the topics, the ACLs, and a group with an offset."""
    with cluster_of(broker, "admin") as cluster:
        topics = [
            create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in TOPICS
        ]
        made = cluster.controller_request(
            create_topics.CreateTopicsRequest(topics=topics, timeout_ms=30_000)
        )
        assert {row.error_code for row in made.topics} == {0}, made
        for name in TOPICS:
            cluster.leader_of(TopicPartition(name, 0))
        committed = {TopicPartition(name, 0): 1 for name in ("open", "hidden")}
        commit_offsets(cluster, "team-a", committed)
    for words in ENTRIES:
        done = acls(broker, directory, f"--add {words}")
        assert done.status == 0, done.stderr


def matrix(broker: ServerProcess, user: str) -> dict[str, list[tuple[Any, ...]]]:
    """By request, the error codes and other fields that depend on ACLs in answers to `user`."""
    with cluster_of(broker, "admin") as cluster:
        ids = {name: t.topic_id for name, t in cluster.metadata(TOPICS, True).topics.items()}
    with cluster_of(broker, user) as cluster:
        return {
            name: sorted(_codes(_answer(cluster, request)), key=repr)
            for name, request in _requests(ids).items()
            # The error for broker 99, which does not exist, does not depend on ACLs.
            if (user, name) != ("admin", "shut down")
        }


def _answer(cluster: Cluster, request: Message) -> Any:
    """The response to a request; retried until the broker has a block of producer ids."""
    last = _LAST_VERSIONS_BY_NAME.get(request.API_KEY)
    answers = [cluster.request(request, max_version=last)]

    def is_ready() -> bool:
        answers[0] = cluster.request(request, max_version=last)
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS not in error_codes(answers[0])

    if ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in error_codes(answers[0]):
        wait_until(is_ready, "the broker has producer ids")
    return answers[0]


_NAMES: Final = (
    *("name", "topic", "topic_name", "group_id", "key", "resource_name", "partition_index"),
    *("topic_authorized_operations", "authorized_operations", "cluster_authorized_operations"),
    "topic_config_error_code",
)


def _codes(value: Any, within: str = "") -> Iterator[tuple[Any, ...]]:
    """Every struct with fields that depend on ACLs, and the topic that contains it."""
    if isinstance(value, list):
        for each in value:
            yield from _codes(each, within)
    if not isinstance(value, Struct):
        return
    fields = {each.name: getattr(value, each.name) for each in value.FIELDS}
    known = tuple(fields[name] for name in _NAMES if name in fields)
    if "error_code" in fields or known:
        yield type(value).__name__, within, *known, fields.get("error_code")
    named = next((str(fields[n]) for n in ("name", "topic", "group_id") if fields.get(n)), within)
    for name, field in fields.items():
        if name not in ("brokers", "configs", "node_endpoints"):
            yield from _codes(field, named)


def _rows(kind: Any, names: tuple[str, ...], partition: Any, name: str = "name") -> list[Any]:
    return [kind(**{name: each}, partitions=[partition]) for each in names]


def _requests(ids: dict[str, Any]) -> dict[str, Message]:
    of_cluster = _admin_requests() | _acl_requests() | _quota_requests()
    return _data_requests(ids) | _group_requests() | of_cluster


def _data_requests(ids: dict[str, Any]) -> dict[str, Message]:
    records = build_batch([RecordData(b"k", b"v", 1, [])])
    names = ("open", "pre-a", "pre-secret", "hidden", "all-see")
    asked = [metadata.MetadataRequestTopic(name=name) for name in (*names, "missing", "bobs-new")]
    produced = [
        produce.TopicProduceData(
            name=name, partition_data=[produce.PartitionProduceData(index=0, records=records)]
        )
        for name in ("open", "pre-a", "hidden")
    ]
    fetched = [
        fetch.FetchTopic(
            topic=name,
            topic_id=ids[name],
            partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=1)],
        )
        for name in names
    ]
    return {
        "metadata of all": metadata.MetadataRequest(
            topics=None, include_topic_authorized_operations=True
        ),
        "metadata": metadata.MetadataRequest(
            topics=asked,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        ),
        "metadata by id": metadata.MetadataRequest(
            topics=[
                metadata.MetadataRequestTopic(name=None, topic_id=topic_id)
                for topic_id in (*(ids[name] for name in names), UNKNOWN_ID)
            ],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        ),
        "produce": produce.ProduceRequest(acks=1, timeout_ms=5_000, topic_data=produced),
        "fetch": fetch.FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=fetched, session_epoch=-1
        ),
        "list offsets": list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=_rows(
                list_offsets.ListOffsetsTopic,
                names,
                list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1),
            ),
        ),
        "epochs": offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=_rows(
                offset_for_leader_epoch.OffsetForLeaderTopic,
                names,
                offset_for_leader_epoch.OffsetForLeaderPartition(
                    partition=0, current_leader_epoch=-1, leader_epoch=0
                ),
                "topic",
            ),
        ),
        "producer id": init_producer_id.InitProducerIdRequest(transaction_timeout_ms=60_000),
    }


def _group_requests() -> dict[str, Message]:
    fetched = [
        offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=[0])
        for name in ("open", "hidden")
    ]
    of_topics = [TopicPartition(topic.name, 0) for topic in fetched]
    return {
        "coordinators": find_coordinator.FindCoordinatorRequest(
            key_type=0, coordinator_keys=["team-a", "other"]
        ),
        "commit": commit_request("team-b", dict.fromkeys(of_topics, 1)),
        "commit of others": commit_request("other", {of_topics[0]: 1}),
        "offsets": offset_fetch.OffsetFetchRequest(
            groups=[
                offset_fetch.OffsetFetchRequestGroup(group_id="team-a", topics=fetched),
                offset_fetch.OffsetFetchRequestGroup(group_id="other", topics=fetched),
            ]
        ),
        "all offsets": offset_fetch.OffsetFetchRequest(
            groups=[offset_fetch.OffsetFetchRequestGroup(group_id="team-a", topics=None)]
        ),
        "join": join_group.JoinGroupRequest(
            group_id="other", session_timeout_ms=10_000, protocol_type="consumer"
        ),
        "heartbeat": heartbeat.HeartbeatRequest(group_id="other", member_id="m"),
        "leave": leave_group.LeaveGroupRequest(group_id="other", members=[]),
        "groups": describe_groups.DescribeGroupsRequest(
            groups=["team-a", "other"], include_authorized_operations=True
        ),
        "list groups": list_groups.ListGroupsRequest(),
        "delete groups": delete_groups.DeleteGroupsRequest(groups_names=["nobody"]),
        "delete offsets": offset_delete.OffsetDeleteRequest(
            group_id="nobody",
            topics=_rows(
                offset_delete.OffsetDeleteRequestTopic,
                ("open", "hidden"),
                offset_delete.OffsetDeleteRequestPartition(partition_index=0),
            ),
        ),
    }


def _admin_requests() -> dict[str, Message]:
    resources = [(2, "open"), (2, "hidden"), (4, "0")]
    return {
        "cluster": describe_cluster.DescribeClusterRequest(
            include_cluster_authorized_operations=True
        ),
        "create": create_topics.CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                for name in ("bobs-own", "nobodys")
            ],
            timeout_ms=5_000,
            validate_only=True,
        ),
        "delete": delete_topics.DeleteTopicsRequest(
            topics=[delete_topics.DeleteTopicState(name="gone")], timeout_ms=5_000
        ),
        "delete records": delete_records.DeleteRecordsRequest(
            topics=_rows(
                delete_records.DeleteRecordsTopic,
                ("open", "hidden"),
                delete_records.DeleteRecordsPartition(partition_index=0, offset=0),
            ),
            timeout_ms=5_000,
        ),
        "partitions": create_partitions.CreatePartitionsRequest(
            topics=[create_partitions.CreatePartitionsTopic(name="open", count=2)],
            timeout_ms=5_000,
            validate_only=True,
        ),
        "configs": describe_configs.DescribeConfigsRequest(
            resources=[
                describe_configs.DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=["retention.ms"]
                )
                for kind, name in resources
            ]
        ),
        "alter configs": incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=kind, resource_name=name, configs=[]
                )
                for kind, name in resources
            ],
            validate_only=True,
        ),
        "log dirs": describe_log_dirs.DescribeLogDirsRequest(topics=[]),
        "elect": elect_leaders.ElectLeadersRequest(topic_partitions=[], timeout_ms=5_000),
        "reassign": reassignments.AlterPartitionReassignmentsRequest(topics=[], timeout_ms=5_000),
        "shut down": controlled_shutdown.ControlledShutdownRequest(broker_id=99, broker_epoch=1),
    }


def _acl_requests() -> dict[str, Message]:
    creation = create_acls.AclCreation(
        resource_type=4,
        resource_name="not-the-cluster",
        principal="User:bob",
        host="*",
        operation=2,
        permission_type=3,
    )
    nothing = {
        "resource_type_filter": 2,
        "resource_name_filter": "nobodys",
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return {
        "create acls": create_acls.CreateAclsRequest(creations=[creation]),
        "delete acls": delete_acls.DeleteAclsRequest(
            filters=[delete_acls.DeleteAclsFilter(**nothing)]
        ),
        "describe acls": describe_acls.DescribeAclsRequest(**nothing),
    }


def _quota_requests() -> dict[str, Message]:
    return {
        "alter quotas": alter_client_quotas.AlterClientQuotasRequest(
            entries=[
                alter_client_quotas.EntryData(
                    entity=[alter_client_quotas.EntityData(entity_type="user", entity_name=user)],
                    ops=[],
                )
                for user in USERS
            ],
            validate_only=True,
        ),
        "describe quotas": describe_client_quotas.DescribeClientQuotasRequest(components=[]),
    }
