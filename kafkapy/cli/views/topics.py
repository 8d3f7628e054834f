"""`topics --describe` as text, table and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kafkapy.admin.topic_descriptions import PartitionDescription, TopicDescription
from kafkapy.cli.framework.output import Report, Table
from kafkapy.common.uuid import ZERO_UUID

_REPORTS: Final = {
    "under_replicated_partitions": lambda p: p.under_replicated,
    "unavailable_partitions": lambda p: p.unavailable,
    "under_min_isr_partitions": lambda p: p.under_min_isr,
    "at_min_isr_partitions": lambda p: p.at_min_isr,
}


def describe_report(
    topics: Sequence[TopicDescription],
    reports: Sequence[str],
    overrides_only: bool,
    *,
    is_legacy_text: bool = False,
) -> Report:
    """All topics, or the selection of the named reports (joined by "or") and `overrides_only`.

    A report shows matching partitions without their topics' headers, as `TopicCommand` does;
    `overrides_only` shows only headers. `is_legacy_text` selects the text of Kafka 2.7, without
    later fields.
    """
    if overrides_only:
        topics = [topic for topic in topics if topic.overrides]
    selected = [
        (topic, [] if overrides_only else [p for p in topic.partitions if _is_selected(reports, p)])
        for topic in topics
    ]
    if reports:
        selected = [(topic, partitions) for topic, partitions in selected if partitions]
    text = []
    for topic, partitions in selected:
        text += [] if reports else [header_line(topic, is_legacy_text=is_legacy_text)]
        text += [
            partition_line(partition, is_legacy_text=is_legacy_text) for partition in partitions
        ]
    data = [_json(topic, partitions) for topic, partitions in selected]
    tables = [_table(topic, partitions) for topic, partitions in selected]
    return Report("topics", data, text, tables or [Table(("No topics",), [])])


def header_line(topic: TopicDescription, *, is_legacy_text: bool = False) -> str:
    """The line of a topic; `TopicId` is left out if the broker returned none."""
    configs = ",".join(
        f"{name}={'null' if value is None else value}" for name, value in topic.overrides.items()
    )
    topic_id = topic.metadata.topic_id
    return "\t".join(
        [
            f"Topic: {topic.metadata.name}",
            *([] if is_legacy_text or topic_id == ZERO_UUID else [f"TopicId: {topic_id}"]),
            f"PartitionCount: {len(topic.partitions)}",
            f"ReplicationFactor: {topic.replication_factor}",
            f"Configs: {configs}",
        ]
    )


def partition_line(partition: PartitionDescription, *, is_legacy_text: bool = False) -> str:
    """The line of a partition. Eligible leader replicas exist only in KRaft; otherwise `N/A`."""
    metadata, moving = partition.metadata, partition.reassignment
    moving_replicas = [
        f"Adding Replicas: {_ids(moving.adding)}",
        f"Removing Replicas: {_ids(moving.removing)}",
    ]
    elr, last = map(_ids, partition.eligible) if partition.eligible else ("N/A", "N/A")
    return "\t".join(
        [
            "",
            f"Topic: {partition.topic}",
            f"Partition: {metadata.partition}",
            f"Leader: {metadata.leader if partition.has_leader else 'none'}",
            f"Replicas: {_ids(metadata.replicas)}",
            f"Isr: {_ids(metadata.isr)}",
            *(moving_replicas if any(moving) else []),
            *([] if is_legacy_text else [f"Elr: {elr}", f"LastKnownElr: {last}"]),
        ]
    )


def _is_selected(reports: Sequence[str], partition: PartitionDescription) -> bool:
    return not reports or any(_REPORTS[report](partition) for report in reports)


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _json(topic: TopicDescription, partitions: Sequence[PartitionDescription]) -> dict[str, Any]:
    topic_id = topic.metadata.topic_id
    return {
        "topic": topic.metadata.name,
        "topic_id": None if topic_id == ZERO_UUID else str(topic_id),
        "internal": topic.metadata.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "configs": topic.overrides,
        "partitions": [
            {
                "partition": p.metadata.partition,
                "leader": p.metadata.leader if p.has_leader else None,
                "leader_epoch": p.metadata.leader_epoch,
                "replicas": list(p.metadata.replicas),
                "isr": list(p.metadata.isr),
                "offline_replicas": list(p.metadata.offline_replicas),
                "adding_replicas": list(p.reassignment.adding),
                "removing_replicas": list(p.reassignment.removing),
                "eligible_leader_replicas": list(p.eligible.replicas) if p.eligible else None,
                "last_known_eligible_leader_replicas": (
                    list(p.eligible.last_known) if p.eligible else None
                ),
            }
            for p in partitions
        ],
    }


def _table(topic: TopicDescription, partitions: Sequence[PartitionDescription]) -> Table:
    configs = ", ".join(f"{name}={value}" for name, value in topic.overrides.items())
    title = f"{topic.metadata.name}  {len(topic.partitions)} partitions, "
    title += f"replication factor {topic.replication_factor}"
    rows = [
        (
            p.metadata.partition,
            p.metadata.leader if p.has_leader else "none",
            _ids(p.metadata.replicas),
            _ids(p.metadata.isr),
            _health(p),
        )
        for p in partitions
    ]
    columns = ("Partition", "Leader", "Replicas", "In sync", "")
    return Table(columns, rows, title + (f"  ({configs})" if configs else ""))


def _health(partition: PartitionDescription) -> str:
    """The health of a partition in one word."""
    if partition.unavailable:
        return "offline"
    if partition.under_replicated:
        return "under-replicated"
    moving = partition.reassignment
    return "moving" if moving.adding or moving.removing else ""
