"""Topics that leave every kind of file in a log directory: what dump-log-segments must read.

Every codec, headers, nulls and bytes that are no text; commits and aborts of transactions, an
idempotent producer; a compacted topic of several segments; a consumer group's commits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy.client.cluster import Cluster
from kafkapy.common import topic_partition
from kafkapy.record.codec import Codec
from kafkapy.storage.log_names import LOG_SUFFIX, offset_file_name
from tests.conformance.peer import CODECS
from tests.harness.processes.waiting import wait_until
from tests.harness.storage.legacy_messages import message, message_set, wrapper

LIMIT_S = 60.0
START_MS = 1_700_000_000_000
ODD = (
    b"caf\xc3\xa9",
    b"\xff\xfe\x00 no text \xf0\x9f\x98\x80 \xed\xa0\x80",
    b"",
    b"two\nlines\t{}",
)

BROKER_SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.delete.retention.ms": "600000",
    "log.retention.ms": "-1",
    "log.initial.task.delay.ms": "100",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "16384",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.index.bytes": "4096",
    "index.interval.bytes": "512",
}


def create(servers: str, name: str, **configs: str) -> None:
    topic = NewTopic(name, 1, 1, config={k.replace("_", "."): v for k, v in configs.items()})
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([topic])[name].result(LIMIT_S)


def write_codecs(servers: str, count: int) -> None:
    """A topic for each codec: one record with everything, then batches that compress."""
    for codec in CODECS:
        name = f"codec-{codec}"
        create(servers, name, segment_bytes="65536", index_interval_bytes="2048")
        producer = Producer(
            {
                "bootstrap.servers": servers,
                "compression.type": codec,
                "enable.idempotence": codec == "zstd",
                "linger.ms": 20,
            }
        )
        headers = [("h1", b"x"), ("h2", None), ("naïve", b"\xff")]
        producer.produce(name, b"", "k1", timestamp=START_MS, headers=headers)
        producer.produce(name, None, "k2", timestamp=START_MS + 5)
        for i, odd in enumerate(ODD):
            producer.produce(name, odd, odd[:4], timestamp=START_MS + i)
        producer.flush(LIMIT_S)
        for i in range(count):
            text = f"record {i} of {name}, {'abc' * (i % 30)}"
            producer.produce(name, text, str(i) if i % 3 else None, timestamp=START_MS + 10 * i)
            if i % (count // 4) == 0:
                producer.flush(LIMIT_S)


def write_append_time(servers: str) -> None:
    create(servers, "append-time", message_timestamp_type="LogAppendTime")
    producer = Producer({"bootstrap.servers": servers, "compression.type": "gzip"})
    for i in range(20):
        producer.produce("append-time", f"v{i}", f"k{i}", timestamp=START_MS)
    producer.flush(LIMIT_S)


def write_compacted(servers: str, log_dir: Path, count: int) -> None:
    """Segments that the cleaner has been over, with tombstones and gaps."""
    create(servers, "compacted", **COMPACTED)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    for i in range(count):
        value = None if i % 17 == 0 else f"value {i} ".ljust(40, "x")
        key = f"rare {i % 250}" if i % 3 == 0 else f"often {i % 40}"
        producer.produce("compacted", value, key, timestamp=START_MS + i)
        if i % 50 == 49:
            producer.flush(LIMIT_S)
    producer.flush(LIMIT_S)
    logs = log_dir / "compacted-0"

    def cleaned() -> bool:
        sizes = [path.stat().st_size for path in logs.glob(f"*{LOG_SUFFIX}")]
        return sum(sizes) <= 2 * int(COMPACTED["segment.bytes"])

    wait_until(cleaned, "the cleaner has been over the segments", LIMIT_S)


def write_transactions(servers: str, count: int, settle: Callable[[str], None]) -> None:
    """Committed and aborted transactions of two producers, in one partition, with offsets."""
    create(servers, "transactions", segment_bytes="65536", index_interval_bytes="512")
    producers = {
        name: Producer({"bootstrap.servers": servers, "transactional.id": name, "linger.ms": 0})
        for name in ("payments", "refunds")
    }
    for producer in producers.values():
        producer.init_transactions(LIMIT_S)
    for turn in range(6):
        for name, producer in producers.items():
            producer.begin_transaction()
            for i in range(count):
                producer.produce("transactions", f"{name} {turn} {i}".ljust(60), f"k{i}")
            producer.flush(LIMIT_S)
        for name, producer in producers.items():
            end = (turn + len(name)) % 3
            (producer.abort_transaction if end == 0 else producer.commit_transaction)(LIMIT_S)
    settle("transactions")


def write_groups(servers: str, **settings: str) -> None:
    """A group that joins, commits with metadata, and leaves; then one that is deleted."""
    for group in ("readers", "gone"):
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **settings,
            }
        )
        consumer.subscribe(["codec-none", "append-time"])
        got: list[bool] = []

        def polled(consumer: Consumer = consumer, got: list[bool] = got) -> bool:
            message = consumer.poll(0.1)
            got.extend([True] if message is not None and message.error() is None else [])
            return bool(got)

        wait_until(polled, "the group reads", LIMIT_S)
        where = TopicPartition("codec-none", 0, 7, "where é was")
        consumer.commit(offsets=[where], asynchronous=False)
        consumer.close()
    delete_group(servers, "gone")


def delete_group(servers: str, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})

    def deleted() -> bool:
        try:
            admin.delete_consumer_groups([group])[group].result(LIMIT_S)
        except Exception as error:
            code = getattr(error.args[0], "code", lambda: None)()
            return bool(code == KafkaError.GROUP_ID_NOT_FOUND)
        return True

    wait_until(deleted, f"group {group} is deleted", LIMIT_S)


def settle_by_reading(servers: str) -> Callable[[str], None]:
    """Waits until the last marker of a topic is on disk: its last stable offset is its end."""

    def settle(topic: str) -> None:
        tp = topic_partition.TopicPartition(topic, 0)

        def stable() -> bool:
            with Cluster(servers) as cluster:
                ends = [cluster.list_offsets({tp: -1}, level)[tp].offset for level in (0, 1)]
            return ends[0] == ends[1]

        wait_until(stable, f"{topic} has no open transaction", LIMIT_S)

    return settle


def write_legacy(log_dir: Path) -> None:
    """Segments of the formats v0 and v1, which no broker writes any more."""
    for magic in (0, 1):
        directory = log_dir / f"legacy-{magic}"
        directory.mkdir()
        log = message_set(magic, [0, 1, 2]) + message(magic, 3, None, b"", timestamp=4)
        log += message(magic, 4, b"", None, timestamp=5)
        offset = 5
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            inner = list(range(3)) if magic else list(range(offset, offset + 3))
            log += wrapper(magic, codec, message_set(magic, inner), offset=offset + 2)
            offset += 3
        last = message_set(magic, [0, 1] if magic else [offset, offset + 1])
        log += wrapper(magic, Codec.GZIP, last, offset=offset + 1, log_append_time=magic == 1)
        (directory / offset_file_name(0, LOG_SUFFIX)).write_bytes(log)


def write_topics(servers: str, log_dir: Path, count: int = 2_000) -> None:
    """All of the above on a running broker whose log directory is `log_dir`; `count` is about how
    many records a topic gets."""
    write_codecs(servers, count)
    write_append_time(servers)
    write_compacted(servers, log_dir, max(count, 700))
    write_groups(servers)
    write_transactions(servers, max(count // 100, 3), settle_by_reading(servers))
