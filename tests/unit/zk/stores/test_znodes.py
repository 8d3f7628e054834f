"""The exact JSON of each znode, older versions, and broken ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkapy.common.cluster_state import (
    RECOVERING,
    BrokerInfo,
    Endpoint,
    Feature,
    LeaderAndIsr,
    TopicDescription,
)
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.zk.stores import znodes
from kafkapy.zk.stores.znodes import ConfigChange, ProducerIdBlock, ZnodeError

ID = Uuid(bytes(15) + b"\x07")


def test_broker() -> None:
    broker = BrokerInfo(
        1,
        (
            Endpoint("SSL", "secure", 9093, "SSL"),
            Endpoint("INSIDE", "::1", 9092, "PLAINTEXT"),
        ),
        "r1",
    )
    data = znodes.encode_broker(broker, 1700000000000)
    assert data == (
        b'{"version":5,"host":"::1","port":9092,"jmx_port":-1,"timestamp":"1700000000000",'
        b'"endpoints":["SSL://secure:9093","INSIDE://[::1]:9092"],"rack":"r1",'
        b'"listener_security_protocol_map":{"SSL":"SSL","INSIDE":"PLAINTEXT"},"features":{}}'
    )
    assert znodes.decode_broker(1, data) == broker


def test_the_features_of_a_broker() -> None:
    broker = BrokerInfo(
        1, (Endpoint("PLAINTEXT", "h", 1),), None, (Feature("group.version", 1, 2),)
    )
    data = znodes.encode_broker(broker, 0)
    assert data.endswith(b'"features":{"group.version":{"min_version":1,"max_version":2}}}')
    assert znodes.decode_broker(1, data) == broker


@pytest.mark.parametrize("features", [b"7", b'{"f":1}', b'{"f":{"min_version":1}}', b"null"])
def test_features_that_cannot_be_read_are_none(features: bytes) -> None:
    data = znodes.encode_broker(BrokerInfo(1, (Endpoint("PLAINTEXT", "h", 1),)), 0)
    found = znodes.decode_broker(1, data.replace(b"{}}", features + b"}"))
    assert (found.broker_id, found.features) == (1, ())


def test_a_broker_without_plaintext_or_rack() -> None:
    data = znodes.encode_broker(BrokerInfo(1, (Endpoint("SSL", "h", 1, "SSL"),)), 0)
    assert b'"host":null,"port":-1' in data
    assert b"rack" not in data


def test_old_brokers() -> None:
    first = b'{"version":1,"host":"h","port":9092,"jmx_port":-1,"timestamp":"0"}'
    assert znodes.decode_broker(3, first) == BrokerInfo(3, (Endpoint("PLAINTEXT", "h", 9092),))
    second = b'{"version":2,"host":"h","port":1,"endpoints":["SSL://h:2"]}'
    assert znodes.decode_broker(3, second).endpoints == (Endpoint("SSL", "h", 2, "SSL"),)


def test_topic() -> None:
    topic = TopicDescription("t", ID, {1: (2, 1), 0: (1, 2, 3)}, {0: (3,), 1: ()}, {1: ()})
    data = znodes.encode_topic(topic)
    assert data == (
        b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAABw",'
        b'"partitions":{"0":[1,2,3],"1":[2,1]},"adding_replicas":{"0":[3]},"removing_replicas":{}}'
    )
    read = znodes.decode_topic("t", data)
    assert read == TopicDescription("t", ID, {0: (1, 2, 3), 1: (2, 1)}, {0: (3,)}, {})
    assert list(read.assignment) == [0, 1]


def test_old_topics() -> None:
    first = b'{"version":1,"partitions":{"0":[1]}}'
    assert znodes.decode_topic("t", first) == TopicDescription("t", ZERO_UUID, {0: (1,)})
    assert b"topic_id" not in znodes.encode_topic(TopicDescription("t", ZERO_UUID, {0: (1,)}))


def test_partition_state() -> None:
    state = LeaderAndIsr(1, 4, (1, 2), 7, 3)
    data = znodes.encode_partition_state(state)
    assert data == b'{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}'
    assert znodes.decode_partition_state("/p", data, 7) == state
    assert znodes.decode_brokers_zxid("/p", data) is None
    knowing = znodes.encode_partition_state(state, 2**40)
    assert knowing == data[:-1] + b',"brokers_zxid":1099511627776}'
    assert znodes.decode_partition_state("/p", knowing, 7) == state
    assert znodes.decode_brokers_zxid("/p", knowing) == 2**40
    assert znodes.decode_brokers_zxid("/p", b'{"brokers_zxid":true}') is None
    recovering = LeaderAndIsr(1, 4, (1,), 7, 3, RECOVERING)
    data = znodes.encode_partition_state(recovering)
    assert data.endswith(b'"isr":[1],"leader_recovery_state":1}')
    assert znodes.decode_partition_state("/p", data, 7) == recovering


def test_small_ones() -> None:
    assert znodes.decode_controller(znodes.encode_controller(5, 0)) == 5
    assert znodes.decode_controller(b'{"version":1,"brokerid":2,"timestamp":"0"}') == 2
    assert znodes.decode_controller_epoch(b"42") == 42
    assert znodes.encode_cluster_id("abc") == b'{"version":"1","id":"abc"}'
    assert znodes.decode_cluster_id(b'{"version":"1","id":"abc"}') == "abc"
    assert znodes.encode_config({"b": "2", "a": "1"}) == b'{"version":1,"config":{"a":"1","b":"2"}}'
    assert znodes.decode_config("/c", b'{"version":1,"config":{"a":"1"}}') == {"a": "1"}
    assert znodes.decode_config("/c", b"") == {}
    assert znodes.encode_feature() == b'{"version":2,"status":1,"features":{}}'


def test_config_changes() -> None:
    change = ConfigChange("users", "alice/clients/app")
    data = znodes.encode_config_change(change)
    assert data == b'{"version":2,"entity_path":"users/alice/clients/app"}'
    assert znodes.decode_config_change("/c", data) == change
    old = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert znodes.decode_config_change("/c", old) == ConfigChange("topics", "t")


def test_changes_of_what_apache_kafka_does_not_have_are_not_json() -> None:
    """Its brokers ignore such a notification; for one in JSON they log an error."""
    for change in (ConfigChange("groups", "g%2F1"), ConfigChange("client-metrics", "123")):
        data = znodes.encode_config_change(change)
        assert data == "/".join(change).encode()
        assert znodes.decode_config_change("/c", data) == change


def test_producer_id_block() -> None:
    block = ProducerIdBlock(1, 1000, 1999)
    data = znodes.encode_producer_id_block(block)
    assert data == b'{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}'
    assert znodes.decode_producer_id_block(data) == block


def test_requests() -> None:
    partitions = [TopicPartition("t", 0), TopicPartition("u", 3)]
    data = znodes.encode_partitions(partitions)
    assert data == (
        b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":3}]}'
    )
    assert znodes.decode_partitions("/p", data) == partitions
    targets = {TopicPartition("t", 0): (1, 2), TopicPartition("u", 3): ()}
    data = znodes.encode_reassignments(targets)
    assert data == (
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]},'
        b'{"topic":"u","partition":3,"replicas":[]}]}'
    )
    assert znodes.decode_reassignments(data) == targets
    assert znodes.encode_log_dir_event(2) == b'{"version":1,"broker":2,"event":1}'
    assert znodes.decode_log_dir_event("/p", znodes.encode_log_dir_event(2)) == 2


DECODERS: list[tuple[str, Callable[[bytes], object], list[bytes]]] = [
    (
        "/brokers/ids/1",
        lambda data: znodes.decode_broker(1, data),
        [
            b"{}",
            b'{"endpoints":["nonsense"]}',
            b'{"endpoints":7}',
            b'{"endpoints":["A://h:1"],"listener_security_protocol_map":null}',
            b'{"endpoints":["A://h:1"],"listener_security_protocol_map":{"A":["SSL"]}}',
            b'{"endpoints":["A://h:2147483648"]}',
            b'{"endpoints":["A://h:1"],"rack":5}',
            b'{"endpoints":["A://h:1"],"rack":0}',
            b'{"host":null,"port":9092}',
            b'{"host":"h","port":"9092"}',
        ],
    ),
    (
        "/brokers/topics/t",
        lambda data: znodes.decode_topic("t", data),
        [
            b"{}",
            b'{"partitions":[]}',
            b'{"partitions":{"x":[1]}}',
            b'{"partitions":{"0":["a"]}}',
            b'{"partitions":{"0":[]}}',
            b'{"partitions":{"0":[2147483648]}}',
            b'{"partitions":{"0":[1]},"adding_replicas":{"0":[2147483648]}}',
            b'{"partitions":{"0":[1]},"topic_id":"?"}',
        ],
    ),
    (
        "/state",
        lambda data: znodes.decode_partition_state("/state", data, 0),
        [
            b"{}",
            b'{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":null}',
            b'{"leader":"1","leader_epoch":0,"controller_epoch":1,"isr":[1]}',
            b'{"leader":2147483648,"leader_epoch":0,"controller_epoch":1,"isr":[1]}',
            b'{"leader":1,"leader_epoch":2147483648,"controller_epoch":1,"isr":[1]}',
            b'{"leader":1,"leader_epoch":0,"controller_epoch":2147483648,"isr":[1]}',
            b'{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[2147483648]}',
            b'{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1],'
            b'"leader_recovery_state":2}',
            b'{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1],'
            b'"leader_recovery_state":1.0}',
        ],
    ),
    ("/controller", znodes.decode_controller, [b"{}", b'{"brokerid":"1"}']),
    ("/cluster/id", znodes.decode_cluster_id, [b"{}"]),
    ("/c", lambda data: znodes.decode_config("/c", data), [b"{}", b'{"config":3}']),
    (
        "/c",
        lambda data: znodes.decode_config_change("/c", data),
        [
            b"{}",
            b'{"version":1}',
            b'{"version":1,"entity_type":["users"],"entity_name":"u"}',
            b'{"version":1,"entity_type":"users","entity_name":5}',
        ],
    ),
    ("/latest_producer_id_block", znodes.decode_producer_id_block, [b"{}"]),
    ("/p", lambda data: znodes.decode_partitions("/p", data), [b"{}", b'{"partitions":[1]}']),
    (
        "/admin/reassign_partitions",
        znodes.decode_reassignments,
        [
            b"{}",
            b'{"partitions":[{"topic":"t","partition":0}]}',
            b'{"partitions":[{"topic":"t","partition":0,"replicas":7}]}',
            b'{"partitions":[{"topic":"t","partition":0,"replicas":["1"]}]}',
            b'{"partitions":[{"topic":"t","partition":0,"replicas":[2147483648]}]}',
        ],
    ),
]


@pytest.mark.parametrize(
    ("path", "decode", "data"),
    [
        (path, decode, data)
        for path, decode, broken in DECODERS
        for data in (b"", b"{", b"[]", b"\xff", *broken)
        if not (data == b"" and path == "/c" and broken[1:] == [b'{"config":3}'])
    ],
)
def test_broken_nodes_are_named(path: str, decode: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(ZnodeError, match=f"znode {path} cannot be read") as refused:
        decode(data)
    assert refused.value.path == path


def test_a_broken_controller_epoch_is_named() -> None:
    with pytest.raises(ZnodeError, match="/controller_epoch"):
        znodes.decode_controller_epoch(b"one")
