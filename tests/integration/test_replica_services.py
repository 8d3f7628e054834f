"""Services that several brokers give together: groups, producer ids, configs, deletions, racks."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from kafkapy.client.cluster import Cluster
from kafkapy.client.fetch import fetch_batches
from kafkapy.client.librdkafka import producer_config
from kafkapy.client.security import Security
from kafkapy.client.transport import Transport, connect
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition, partition_for_key
from kafkapy.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.scripted.cli import kafkapy

SETTINGS = {
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.backoff.ms": "100",
    "replica.fetch.wait.max.ms": "200",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "6",
    "min.insync.replicas": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
    "log.cleaner.enable": "false",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
CONSUMER = {
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 500,
    "topic.metadata.refresh.interval.ms": 500,
    **QUIET,
}


@pytest.fixture
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerGroup]:
    """Brokers 1 to 3, each in a rack of its own."""
    made = BrokerGroup(tmp_path_factory.mktemp("services"), (1, 2, 3), SETTINGS)
    for broker_id, broker in made.brokers.items():
        broker.command += ["--override", f"broker.rack=rack-{broker_id}"]
    with made:
        yield made


def leaders(group: BrokerGroup, topic: str) -> dict[int, int]:
    with Cluster(group.bootstrap_servers) as cluster:
        found = cluster.metadata([topic], refresh=True).topics[topic]
        return {p.partition: p.leader for p in found.partitions.values()}


def in_sync(group: BrokerGroup, topic: str) -> list[set[int]]:
    with Cluster(group.bootstrap_servers) as cluster:
        found = cluster.metadata([topic], refresh=True).topics[topic]
        return [set(p.isr) for p in found.partitions.values()]


def create(group: BrokerGroup, topic: str, *words: str) -> None:
    """Create a topic and wait until every broker knows it."""
    servers = group.bootstrap_servers
    made = kafkapy("topics", "--bootstrap-server", servers, "--create", "--topic", topic, *words)
    assert made.status == 0, made
    for broker in group.brokers.values():
        wait_until(lambda b=broker: knows(b, topic), f"{broker.name} knows {topic}")


def kill(group: BrokerGroup, broker_id: int) -> None:
    """Kill a broker and wait until its session is over: not before may it come back."""
    group.brokers[broker_id].kill()

    def is_gone() -> bool:
        with Cluster(group.bootstrap_servers) as cluster:
            return broker_id not in cluster.metadata([], refresh=True).brokers

    wait_until(is_gone, f"broker {broker_id} is gone")


def knows(broker: BrokerProcess, topic: str) -> bool:
    with Cluster(broker.bootstrap_servers) as cluster:
        found = cluster.metadata([topic], refresh=True).topics.get(topic)
        return found is not None and len(found.partitions) > 0


def produce(servers: str, topic: str, values: range, **settings: Any) -> list[str]:
    """Write the numbers, each to partition number % 6 (or 0); the errors."""
    errors: list[str] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, **QUIET, **settings})
    partitions = len(producer.list_topics(topic, 30).topics[topic].partitions)
    for number in values:
        producer.produce(
            topic,
            str(number),
            partition=number % partitions,
            on_delivery=lambda error, _: errors.append(error.name()) if error else None,
        )
    assert producer.flush(60) == 0
    return errors


class Member(threading.Thread):
    """A group member that commits what it has read after each poll, until it is stopped."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)  # a test that fails does not stop it
        self.read: list[tuple[int, int, int]] = []  # (partition, offset, value)
        self.partitions = 0  # how many it has to read
        self.committed_ends: dict[int, int] = {}
        self._stop_asked = threading.Event()
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "movers",
                "enable.auto.commit": False,
                **CONSUMER,
            }
        )
        self._consumer.subscribe([topic], on_assign=self._assigned)

    def _assigned(self, _: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.partitions = len(partitions)

    def run(self) -> None:
        while not self._stop_asked.is_set():
            found = [m for m in self._consumer.consume(100, 0.2) if m.error() is None]
            self.read += [(m.partition(), m.offset(), int(m.value())) for m in found]
            if found:
                self._commit({m.partition(): m.offset() + 1 for m in found}, found[0].topic())
        self._consumer.close()

    def _commit(self, ends: dict[int, int], topic: str) -> None:
        rows = [confluent_kafka.TopicPartition(topic, p, end) for p, end in ends.items()]
        try:
            self._consumer.commit(offsets=rows, asynchronous=False)
        except confluent_kafka.KafkaException:
            return  # the coordinator is gone: what is not committed may come again
        self.committed_ends.update(ends)

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(LIMIT_S)
        assert not self.is_alive()


def coordinator_of(group: BrokerGroup, group_id: str) -> int:
    partitions = leaders(group, GROUP_METADATA_TOPIC)
    return partitions[partition_for_key(group_id, len(partitions))]


def test_a_group_goes_on_when_its_coordinator_is_killed(group: BrokerGroup) -> None:
    servers = group.bootstrap_servers
    create(group, "moving", "--partitions", "6", "--replication-factor", "3")
    members = [Member(servers, "moving") for _ in range(2)]
    for member in members:
        member.start()
    # Else the first to join might have read everything before the second comes.
    wait_until(lambda: all(member.partitions == 3 for member in members), "both members joined")
    assert produce(servers, "moving", range(300), acks="all") == []
    wait_until(lambda: all(member.read for member in members), "both members read")
    wait_until(lambda: sum(map(_ends, members)) >= 300, "all is committed")
    before = {key for member in members for key in member.read}
    assert len(before) == 300

    killed = coordinator_of(group, "movers")
    group.brokers[killed].kill()
    assert produce(group.bootstrap_servers, "moving", range(300, 900), acks="all") == []

    def values() -> Counter[int]:
        return Counter(value for member in members for _, _, value in member.read)

    wait_until(lambda: values().keys() == set(range(900)), "every record is read")
    assert coordinator_of(group, "movers") != killed
    assert all(values()[number] == 1 for number in range(300)), "committed before: never again"
    for member in members:
        member.stop()
    last = Member(group.bootstrap_servers, "moving")
    last.start()
    assert produce(group.bootstrap_servers, "moving", range(900, 906), acks="all") == []
    wait_until(lambda: {v for _, _, v in last.read} >= set(range(900, 906)), "offsets resume")
    last.stop()
    committed = {p: max(m.committed_ends.get(p, 0) for m in members) for p in range(6)}
    assert all(offset >= committed[partition] for partition, offset, _ in last.read)


def _ends(member: Member) -> int:
    return sum(member.committed_ends.values())


def test_what_brokers_give_out_together(group: BrokerGroup) -> None:
    check_producer_ids(group)
    check_configs_take_effect_everywhere(group)
    check_deleted_records_are_gone_from_every_replica(group)
    check_consumers_are_sent_to_their_rack(group)
    for side in ("leader", "follower"):
        check_throttled_replication_waits_until_the_throttle_is_lifted(group, side)


def check_producer_ids(group: BrokerGroup) -> None:
    """No two brokers give the same one."""
    given = []
    with Cluster(group.bootstrap_servers) as cluster:
        for broker_id in (1, 2, 3) * 4:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            response = cluster.request(request, broker_id=broker_id)
            assert response.error_code == 0
            given.append(response.producer_id)
    assert len(set(given)) == len(given)


def configs(group: BrokerGroup, broker_id: int, *words: str) -> None:
    servers = group.brokers[broker_id].bootstrap_servers
    altered = kafkapy("configs", "--bootstrap-server", servers, "--alter", *words)
    assert altered.status == 0, altered


def alter(group: BrokerGroup, broker_id: int, topic: str, config: str) -> None:
    words = ("--entity-type", "topics", "--entity-name", topic, "--add-config", config)
    configs(group, broker_id, *words)


def check_configs_take_effect_everywhere(group: BrokerGroup) -> None:
    """Altered through one broker, seen in what another one does."""
    create(group, "altered", "--replica-assignment", "2:3")
    log_dir = group.brokers[2].log_dir / "altered-0"

    def segments() -> int:
        return len(list(log_dir.glob("*.log")))

    assert produce(group.bootstrap_servers, "altered", range(20), acks="all") == []
    assert segments() == 1
    alter(group, 1, "altered", "segment.bytes=1048576,segment.ms=1")
    assert group.brokers[2].running

    def rolls() -> bool:
        assert produce(group.bootstrap_servers, "altered", range(1), acks="all") == []
        return segments() > 1

    wait_until(rolls, "segment.ms=1 has broker 2 roll")
    alter(group, 1, "altered", "min.insync.replicas=2")
    kill(group, 3)
    wait_until(lambda: in_sync(group, "altered") == [{2}], "3 is out")

    def refuses() -> bool:
        options = {"acks": "all", "retries": 0, "message.timeout.ms": 20_000}
        return produce(group.brokers[2].bootstrap_servers, "altered", range(1), **options) == [
            "NOT_ENOUGH_REPLICAS"
        ]

    wait_until(refuses, "min.insync.replicas=2 has broker 2 refuse")
    group.start(3)
    wait_until(lambda: in_sync(group, "altered") == [{2, 3}], "3 is back")


def check_deleted_records_are_gone_from_every_replica(group: BrokerGroup) -> None:
    create(group, "deleted", "--replica-assignment", "1:2:3")
    assert produce(group.bootstrap_servers, "deleted", range(10), acks="all") == []
    client = AdminClient({"bootstrap.servers": group.bootstrap_servers, **QUIET})
    wanted = confluent_kafka.TopicPartition("deleted", 0, 7)
    answer = client.delete_records([wanted], request_timeout=20)[wanted].result(30)
    assert answer.low_watermark == 7
    for broker_id in (2, 3):
        assert fetch(group, broker_id, "deleted", 6, rack="").error_code == 1
        wait_until(
            lambda broker_id=broker_id: bool(fetch(group, broker_id, "deleted", 7, "").records),
            "the follower knows what is committed",
        )


def fetch(group: BrokerGroup, broker_id: int, topic: str, offset: int, rack: str) -> Any:
    """One consumer fetch of partition 0 from one broker; its row."""
    with Cluster(group.bootstrap_servers) as cluster:
        known = cluster.metadata([topic], refresh=True).topics[topic]
        row = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic=topic, topic_id=known.topic_id, partitions=[row])]
        request = FetchRequest(
            replica_id=-1,
            replica_state=ReplicaState(),
            max_wait_ms=100,
            min_bytes=1,
            topics=topics,
            rack_id=rack,
        )
        return cluster.request(request, broker_id=broker_id).responses[0].partitions[0]


def check_consumers_are_sent_to_their_rack(group: BrokerGroup) -> None:
    create(group, "racks", "--replica-assignment", "1:2:3")
    assert produce(group.bootstrap_servers, "racks", range(10), acks="all") == []

    def preferred(rack: str) -> int:
        return int(fetch(group, 1, "racks", 0, rack).preferred_read_replica)

    wait_until(lambda: preferred("rack-3") == 3, "rack-3's replica is chosen")
    assert preferred("rack-2") == 2
    assert preferred("rack-1") == preferred("elsewhere") == -1
    ports: list[int] = []

    def recorded(host: str, port: int, security: Security, timeout_s: float) -> Transport:
        ports.append(port)
        return connect(host, port, security, timeout_s)

    rack = {"client.rack": "rack-3"}
    with Cluster(group.brokers[1].bootstrap_servers, rack, connector=recorded) as cluster:
        *_, last = fetch_batches(cluster, TopicPartition("racks", 0), 0, 10)
    assert last.next_offset == 10
    assert ports[-1] == group.brokers[3].port
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": group.bootstrap_servers,
            "group.id": "near",
            "client.rack": "rack-3",
            **CONSUMER,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition("racks", 0, 0)])
    found: list[int] = []

    def all_read() -> bool:
        found.extend(int(m.value()) for m in consumer.consume(10, 0.5) if not m.error())
        return len(found) >= 10

    wait_until(all_read, "a consumer of rack-3 reads all")
    consumer.close()
    assert found == list(range(10))


def check_throttled_replication_waits_until_the_throttle_is_lifted(
    group: BrokerGroup, side: str
) -> None:
    """At a byte a second the 8 MiB that a replica has missed take longer than any patience."""
    topic = f"throttled-by-{side}"
    create(group, topic, "--replica-assignment", "1:3")
    kill(group, 3)
    wait_until(lambda: in_sync(group, topic) == [{1}], "3 is out")
    producer = confluent_kafka.Producer({"bootstrap.servers": group.bootstrap_servers, **QUIET})
    for _ in range(80):
        producer.produce(topic, bytes(100_000))
    assert producer.flush(60) == 0
    alter(group, 1, topic, f"{side}.replication.throttled.replicas=*")
    rate = f"{side}.replication.throttled.rate"
    default = ("--entity-type", "brokers", "--entity-default")
    configs(group, 2, *default, "--add-config", f"{rate}=1")
    group.start(3)
    log = group.brokers[3].log_dir / f"{topic}-0" / f"{0:020d}.log"
    wait_until(lambda: log.exists() and log.stat().st_size > 0, "3 fetches its first records")
    assert log.stat().st_size < 4_000_000
    assert in_sync(group, topic) == [{1}]
    configs(group, 2, *default, "--delete-config", rate)
    wait_until(lambda: in_sync(group, topic) == [{1, 3}], "3 is in sync again")


def test_a_producer_leaves_a_leader_that_hangs_after_the_request_timeout(
    group: BrokerGroup,
) -> None:
    """It waited a minute for the response of the old leader."""
    create(group, "hung", "--partitions", "1", "--replication-factor", "3")
    given = {"bootstrap.servers": group.bootstrap_servers, "request.timeout.ms": "1500"}
    producer = confluent_kafka.Producer({**producer_config(given), **QUIET})
    errors: list[object] = []

    def send() -> None:
        producer.produce("hung", b"x", on_delivery=lambda error, _: errors.append(error))

    send()
    assert producer.flush(LIMIT_S) == 0
    leader = group.brokers[leaders(group, "hung")[0]]
    leader.pause()
    try:
        send()
        assert producer.flush(LIMIT_S / 2) == 0  # a half: librdkafka's own limit is LIMIT_S
    finally:
        leader.resume()
    assert errors == [None, None]
