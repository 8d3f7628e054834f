"""A fetch that waits for records gets none when its client may no longer read them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafkapy.admin.acls import create_acls
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages import fetch
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from tests.harness.processes import share_wire
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


@pytest.mark.parametrize("kind", [ResourceKind.TOPIC, ResourceKind.GROUP])
def test_a_member_of_a_share_group_that_waits_acquires_nothing(
    broker: BrokerProcess, kind: ResourceKind
) -> None:
    topic, group = f"shared-{kind.name}", f"group-{kind.name}"
    wire, producer = Wire(broker), Wire(broker)
    wire.create(topic)
    wait_until(lambda: share_wire.has_coordinators(wire, topic, group), "the coordinators")
    [begun] = share_wire.alter(wire, topic, group).responses
    assert begun.partitions[0].error_code == ErrorCode.NONE
    assert share_wire.fetch(wire, topic, group, 0, wait_ms=0).error_code == ErrorCode.NONE
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(share_wire.fetch, wire, topic, group, 1, wait_ms=WAIT_MS)
        refuse(broker, kind, topic if kind is ResourceKind.TOPIC else group)
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
