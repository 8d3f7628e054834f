"""Images: merged partitions, replaced brokers, deletions, and readers that keep what they have."""

from __future__ import annotations

from kafkapy.common.cluster_state import (
    BrokerInfo,
    Endpoint,
    LeaderAndIsr,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.metadata.image import MetadataImage, PartitionImage, apply_update


def topic_id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def row(
    topic: str, index: int, leader: int = 1, id_number: int = 1, epoch: int = 0
) -> UpdateMetadataPartition:
    state = LeaderAndIsr(leader, epoch, (1, 2), 5, 1)
    made = topic_id(id_number) if id_number else ZERO_UUID
    return UpdateMetadataPartition(topic, made, index, state, (1, 2, 3), (3,))


def command(
    *rows: UpdateMetadataPartition, live: tuple[int, ...] = (1, 2)
) -> UpdateMetadataCommand:
    brokers = [BrokerInfo(i, (Endpoint("PLAINTEXT", f"h{i}", 9092),)) for i in live]
    return UpdateMetadataCommand(7, 1, 1, list(rows), brokers)


def test_what_a_reader_sees() -> None:
    image, deleted = apply_update(MetadataImage(), command(row("t", 1, 2), row("t", 0)))
    assert deleted == []
    assert (image.controller_id, image.version) == (7, 1)
    topic = image.topic("t")
    assert topic is not None
    assert image.topic_name(None, topic_id(1)) == "t"
    assert list(topic.partitions) == [0, 1]
    assert image.partition("t", 1) == PartitionImage(1, 2, 0, (1, 2), (1, 2, 3), (3,), 5)
    assert image.partition("t", 2) is None
    assert image.partition("x", 0) is None
    assert image.topic_name(None, topic_id(2)) is None


def test_brokers_are_replaced_and_partitions_merged() -> None:
    image, _ = apply_update(MetadataImage(), command(row("t", 0), row("u", 0, 1, 2)))
    image, _ = apply_update(image, command(row("t", 1), live=(2,)))
    assert list(image.brokers) == [2]
    topic, other = image.topic("t"), image.topic("u")
    assert topic is not None
    assert other is not None
    assert list(topic.partitions) == [0, 1]
    assert list(other.partitions) == [0]


def test_old_images_do_not_change() -> None:
    first, _ = apply_update(MetadataImage(), command(row("t", 0)))
    second, _ = apply_update(first, command(row("t", 0, 2, 1, 9), row("n", 0, 1, 3)))
    before, after = first.partition("t", 0), second.partition("t", 0)
    assert before is not None
    assert after is not None
    assert (before.leader, after.leader) == (1, 2)
    assert first.topic("n") is None
    assert first.topic_name(None, topic_id(3)) is None


def test_leader_minus_two_removes_and_the_last_one_takes_the_topic() -> None:
    image, _ = apply_update(MetadataImage(), command(row("t", 0), row("t", 1)))
    image, deleted = apply_update(image, command(row("t", 0, -2)))
    assert deleted == [TopicPartition("t", 0)]
    assert image.partition("t", 1) is not None
    image, deleted = apply_update(image, command(row("t", 0, -2), row("t", 1, -2)))
    assert deleted == [TopicPartition("t", 1)]
    assert image.topic("t") is None
    assert image.topic_name(None, topic_id(1)) is None


def test_another_id_is_another_topic() -> None:
    image, _ = apply_update(MetadataImage(), command(row("t", 0), row("t", 1)))
    image, _ = apply_update(image, command(row("t", 0, 1, 2)))
    topic = image.topic("t")
    assert topic is not None
    assert list(topic.partitions) == [0]
    assert image.topic_name(None, topic_id(1)) is None
    assert image.topic_name(None, topic_id(2)) == "t"


def test_rows_without_an_id_keep_the_known_one() -> None:
    image, _ = apply_update(MetadataImage(), command(row("t", 0)))
    image, _ = apply_update(image, command(row("t", 1, 1, 0)))
    assert image.topic_name(None, topic_id(1)) == "t"
    topic = image.topic("t")
    assert topic is not None
    assert list(topic.partitions) == [0, 1]


def test_a_broker_is_found_by_listener() -> None:
    image, _ = apply_update(MetadataImage(), command())
    assert image.brokers[1].endpoint("PLAINTEXT") == Endpoint("PLAINTEXT", "h1", 9092)
    assert image.brokers[1].endpoint("SSL") is None
