"""Files damaged while the broker is down: it recovers to the last whole batch before the damage."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
import pytest

from tests.conformance import kill_rounds
from tests.conftest import BrokerFactory
from tests.harness.processes.topics import QUIET, create_topic

TOPIC = "damaged"
BATCHES = 60
SIZES = (1, 11, 12, 60, 61, 62, 200, 1000, 4096, *random.Random(1).sample(range(1, 4097), 7))


class Damage(NamedTuple):
    """Damage to the end of a partition's active segment."""

    kind: str  # "cut" or "noise"
    size: int

    def apply(self, segment: Path) -> None:
        content = segment.read_bytes()
        kept, tail = content[: -self.size], content[-self.size :]
        chance = random.Random(self.size)
        noise = bytes(byte ^ chance.randrange(1, 256) for byte in tail)  # every byte changes
        segment.write_bytes(kept + noise if self.kind == "noise" else kept)


DAMAGES = [Damage(kind, size) for kind in ("cut", "noise") for size in SIZES]


def batches(content: bytes) -> Iterator[tuple[int, int, int]]:
    """(base offset, position, end) of each whole batch; written apart from the code under test."""
    position = 0
    while position + 12 <= len(content):
        base_offset, length = struct.unpack_from(">qi", content, position)
        end = position + 12 + length
        if end > len(content):
            return
        yield base_offset, position, end
        position = end


def first_damaged(content: bytes, damaged_from: int) -> tuple[int, int]:
    """(base offset, position) of the first batch that is touched: where recovery must end."""
    return next((base, start) for base, start, end in batches(content) if end > damaged_from)


def active_segment(log_dir: Path, partition: int) -> Path:
    return sorted((log_dir / f"{TOPIC}-{partition}").glob("*.log"))[-1]


def write_batches(servers: str, partitions: int, first: int, count: int) -> None:
    """`count` batches of one to nine records in each partition; values are 0, 1, 2, ..."""
    chance = random.Random(first)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 100, **QUIET}
    )
    numbers = [first] * partitions
    for _ in range(count):
        for partition in range(partitions):
            for _ in range(chance.randrange(1, 10)):
                value = b"%d %s" % (numbers[partition], b"v" * chance.randrange(40))
                producer.produce(TOPIC, value, partition=partition)
                numbers[partition] += 1
        assert producer.flush(60) == 0


def check_values(servers: str, ends: list[int]) -> None:
    """Each partition holds exactly offsets and values 0 .. end - 1."""
    found = kill_rounds.read_everything(servers, TOPIC, len(ends))
    for partition, end in enumerate(ends):
        assert found[partition] == [(number, number) for number in range(end)], partition


def test_damaged_tail_is_cut_to_the_last_whole_batch(broker_factory: BrokerFactory) -> None:
    """Cuts and noise of 1 to 4096 bytes, one kind in each partition, after a kill."""
    broker = broker_factory()
    create_topic(broker.bootstrap_servers, TOPIC, len(DAMAGES))
    write_batches(broker.bootstrap_servers, len(DAMAGES), 0, BATCHES)
    broker.kill()
    ends, cuts = [], []
    for partition, damage in enumerate(DAMAGES):
        segment = active_segment(broker.log_dir, partition)
        content = segment.read_bytes()
        assert len(content) > 4096, "too little was written for this damage"
        base_offset, position = first_damaged(content, len(content) - damage.size)
        damage.apply(segment)
        ends.append(base_offset)
        cuts.append((position, segment.stat().st_size - position))
    already_said = len(broker.output_text())
    broker.start()
    said = broker.output_text()[already_said:]
    check_values(broker.bootstrap_servers, ends)
    for partition, (position, dropped) in enumerate(cuts):
        words = rf"{TOPIC}-{partition}/.*\b{position}\b.*\b{dropped} bytes\b"
        assert not dropped or re.search(words, said), f"not said: {dropped} bytes at {position}"
    assert broker.stop() in (0, 143)
    for partition in range(len(DAMAGES)):
        content = active_segment(broker.log_dir, partition).read_bytes()
        whole = list(batches(content))
        assert whole[-1][2] == len(content), f"partition {partition} ends in half a batch"


def test_recovered_log_goes_on(broker_factory: BrokerFactory) -> None:
    """After recovery new records follow the cut, and a second crash finds them."""
    broker = broker_factory()
    create_topic(broker.bootstrap_servers, TOPIC)
    write_batches(broker.bootstrap_servers, 1, 0, 5)
    broker.kill()
    segment = active_segment(broker.log_dir, 0)
    content = segment.read_bytes()
    end, _ = first_damaged(content, len(content) - 1)
    Damage("cut", 1).apply(segment)
    broker.start()
    write_batches(broker.bootstrap_servers, 1, end, 5)
    broker.kill()
    written = [base for base, _, _ in batches(active_segment(broker.log_dir, 0).read_bytes())]
    assert written[5 - 1] == end
    broker.start()
    found = kill_rounds.read_everything(broker.bootstrap_servers, TOPIC, 1)[0]
    assert [offset for offset, _ in found] == [value for _, value in found]
    assert len(found) > end


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_damaged_indexes_are_rebuilt(broker_factory: BrokerFactory, clean: bool) -> None:
    """Indexes deleted or full of zeros, of old segments and of the active one: all is readable."""
    broker = broker_factory({"log.segment.bytes": "4096", "log.index.interval.bytes": "200"})
    create_topic(broker.bootstrap_servers, TOPIC, 4)
    write_batches(broker.bootstrap_servers, 4, 0, BATCHES)
    ends = log_ends(broker.bootstrap_servers, 4)
    if clean:
        assert broker.stop() in (0, 143)
    else:
        broker.kill()
    damaged = []
    for partition, suffix in enumerate((".index", ".timeindex", ".index", ".timeindex")):
        paths = sorted((broker.log_dir / f"{TOPIC}-{partition}").glob(f"*{suffix}"))
        assert len(paths) > 2, "too few segments for this test"
        damaged += paths
        for path in paths:
            if partition < 2:
                path.unlink()
            else:
                path.write_bytes(bytes(path.stat().st_size))
    broker.start()
    check_values(broker.bootstrap_servers, ends)
    check_look_ups(broker.bootstrap_servers, ends)
    assert all(path.exists() for path in damaged)


def log_ends(servers: str, partitions: int) -> list[int]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "ends", **QUIET})
    asked = [confluent_kafka.TopicPartition(TOPIC, index) for index in range(partitions)]
    ends = [consumer.get_watermark_offsets(item, timeout=30)[1] for item in asked]
    consumer.close()
    return ends


def check_look_ups(servers: str, ends: list[int]) -> None:
    """Reading from any offset and looking up any time go through the damaged indexes."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "look-ups", **QUIET}
    )
    for fifth in range(5):
        starts = [end * fifth // 5 for end in ends]
        consumer.assign(
            [confluent_kafka.TopicPartition(TOPIC, *item) for item in enumerate(starts)]
        )
        first: dict[int, confluent_kafka.Message] = {}
        while len(first) < len(ends):
            message = consumer.poll(30)
            assert message is not None, f"nothing from partitions but {sorted(first)}"
            first.setdefault(message.partition(), message)
        assert [first[partition].offset() for partition in range(len(ends))] == starts
        asked = [
            confluent_kafka.TopicPartition(TOPIC, partition, message.timestamp()[1])
            for partition, message in first.items()
        ]
        for found in consumer.offsets_for_times(asked, timeout=30):
            assert 0 <= found.offset <= starts[found.partition]
    consumer.close()
