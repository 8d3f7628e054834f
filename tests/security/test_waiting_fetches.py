"""A fetch that waits for records gets none when its client may no longer read them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kafkapy.admin.acls import create_acls
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages import alter_share_group_offsets as alter
from kafkapy.protocol.messages import fetch, find_coordinator, share_fetch
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.wire import Wire

WAIT_MS = 15_000
SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
ANYONE = "User:ANONYMOUS"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("guarded") / "logs", SETTINGS) as process:
        yield process


def refuse(broker: BrokerProcess, kind: ResourceKind, name: str) -> None:
    """Take the right to read this from everybody."""
    pattern = ResourcePattern(kind, name, PatternType.LITERAL)
    with Cluster(broker.bootstrap_servers) as cluster:
        create_acls(
            cluster,
            pattern,
            [
                AccessControlEntry(ANYONE, "*", Operation.ALL, Permission.ALLOW),
                AccessControlEntry(ANYONE, "*", Operation.READ, Permission.DENY),
            ],
        )


def group_of(topic: str) -> str:
    return f"group-{topic}"


def begins(wire: Wire, topic: str) -> bool:
    """Whether its group reads the topic from offset 0 on; its coordinators are asked for before."""
    for key_type, key in (
        (0, group_of(topic)),
        (2, f"{group_of(topic)}:{wire.topic_ids[topic]}:0"),
    ):
        asked = find_coordinator.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        if wire.ask(asked, 6).coordinators[0].error_code:
            return False
    row = alter.AlterShareGroupOffsetsRequestPartition(start_offset=0)
    rows = [alter.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[row])]
    request = alter.AlterShareGroupOffsetsRequest(group_id=group_of(topic), topics=rows)
    answered = wire.ask(request, 0)
    return bool(answered.responses) and not answered.responses[0].partitions[0].error_code


def ask_to_share(wire: Wire, topic: str, epoch: int, wait_ms: int) -> Any:
    row = share_fetch.FetchPartition(partition_index=0)
    rows = [share_fetch.FetchTopic(topic_id=wire.topic_ids[topic], partitions=[row])]
    request = share_fetch.ShareFetchRequest(
        group_id=group_of(topic), member_id="me", share_session_epoch=epoch, max_wait_ms=wait_ms,
        min_bytes=1, max_records=9, batch_size=9, topics=rows,
    )  # fmt: skip
    return wire.ask(request, 1)


@pytest.mark.parametrize("kind", [ResourceKind.TOPIC, ResourceKind.GROUP])
def test_a_member_of_a_share_group_that_waits_acquires_nothing(
    broker: BrokerProcess, kind: ResourceKind
) -> None:
    topic = f"shared-{kind.name}"
    wire, producer = Wire(broker), Wire(broker)
    wire.create(topic)
    wait_until(lambda: begins(wire, topic), "the share partition begins")
    assert not ask_to_share(wire, topic, 0, 0).error_code
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask_to_share, wire, topic, 1, WAIT_MS)
        refuse(broker, kind, topic if kind is ResourceKind.TOPIC else group_of(topic))
        assert producer.produce(topic).error_code == ErrorCode.NONE
        [answered] = waiting.result().responses
    [row] = answered.partitions
    assert row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not row.records
    assert not row.acquired_records
    wire.close()
    producer.close()


def test_a_consumer_that_waits_reads_nothing(broker: BrokerProcess) -> None:
    wire, producer = Wire(broker), Wire(broker)
    wire.create("read")
    row = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = fetch.FetchRequest(
        max_wait_ms=WAIT_MS, min_bytes=1,
        topics=[fetch.FetchTopic(topic_id=wire.topic_ids["read"], partitions=[row])],
    )  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wire.ask, request, 13)
        refuse(broker, ResourceKind.TOPIC, "read")
        assert producer.produce("read").error_code == ErrorCode.NONE
        [answered] = waiting.result().responses
    assert answered.partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not answered.partitions[0].records
    wire.close()
    producer.close()
