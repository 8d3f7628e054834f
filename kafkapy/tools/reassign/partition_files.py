"""The JSON files of the partition tools: topics to move, reassignments, partitions, offsets.

{"version":1,"topics":[{"topic":"t"}]}
{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","/d"]}]}
{"partitions":[{"topic":"t","partition":0}]}
{"version":1,"partitions":[{"topic":"t","partition":0,"offset":5}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from kafkapy.admin.log_dirs import Replica
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.json_input import JsonInputError, JsonNode, parse_json

ANY_LOG_DIR: Final = "any"
NOT_JSON: Final = "The input string is not a valid JSON"
_VERSION: Final = 1

_T = TypeVar("_T")


class ReassignmentFile(NamedTuple):
    """Target replicas in the order of the file, with duplicates; log directories by replica."""

    rows: Sequence[tuple[TopicPartition, tuple[int, ...]]]
    log_dirs: Mapping[Replica, str] = MappingProxyType({})

    @property
    def targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Targets by partition, sorted. Of duplicates the last one counts."""
        return dict(sorted(dict(self.rows).items()))


def parse_topics(text: str) -> list[str]:
    """The topics of a topics-to-move file.

    Raises:
        JsonInputError: it is malformed.
    """
    topics = _versioned(text).optional("topics")
    return [row.field("topic").text() for row in topics.items()] if topics else []


def parse_reassignment(text: str) -> ReassignmentFile:
    """Parse a reassignment file, without a check of its content.

    Raises:
        JsonInputError: it is malformed.
    """
    partitions = _versioned(text).optional("partitions")
    rows, log_dirs = [], {}
    for row in partitions.items() if partitions else ():
        tp = _partition(row)
        replicas = tuple(node.integer() for node in row.field("replicas").items())
        rows.append((tp, replicas))
        named = row.optional("log_dirs")
        dirs = [ANY_LOG_DIR] * len(replicas) if named is None else [d.text() for d in named.items()]
        if len(dirs) != len(replicas):
            raise JsonInputError(
                f"Size of replicas list {java_list(replicas)} is different from size of log dirs"
                f" list {java_list(dirs)} for partition {tp}"
            )
        for broker_id, path in zip(replicas, dirs, strict=True):
            if path != ANY_LOG_DIR:
                log_dirs[Replica(*tp, broker_id)] = path
    return ReassignmentFile(rows, log_dirs)


def validate_reassignment(file: ReassignmentFile) -> None:
    """Check the file of `--execute`, without the cluster (`parseExecuteAssignmentArgs`).

    Raises:
        JsonInputError: the first of four errors, with Kafka's text.
    """
    if not file.rows:
        raise JsonInputError("Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in file.rows):
        raise JsonInputError("Partition replica list cannot be empty")
    duplicate_partitions = duplicates(tp for tp, _ in file.rows)
    if duplicate_partitions:
        names = ",".join(map(str, duplicate_partitions))
        raise JsonInputError(f"Partition reassignment contains duplicate topic partitions: {names}")
    duplicate_replicas = [(tp, ids) for tp, replicas in file.rows if (ids := duplicates(replicas))]
    if duplicate_replicas:
        text = ". ".join(
            f"{tp} contains multiple entries for {','.join(map(str, ids))}"
            for tp, ids in duplicate_replicas
        )
        raise JsonInputError(f"Partition replica lists may not contain duplicate entries: {text}")


def format_reassignment(assignment: Mapping[TopicPartition, Sequence[int]]) -> str:
    """One line of JSON, sorted by topic and partition, every log directory "any"."""
    partitions = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(replicas),
            "log_dirs": [ANY_LOG_DIR] * len(replicas),
        }
        for tp, replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": _VERSION, "partitions": partitions}, separators=(",", ":"))


def parse_partitions(text: str, data_name: str) -> list[TopicPartition]:
    """The partitions of an election's file. Messages call it `data_name`.

    Raises:
        JsonInputError: it is malformed, or names a partition twice.
    """
    partitions = parse_json(text, f"{data_name} is empty").optional("partitions")
    if partitions is None:
        raise JsonInputError(f'{data_name} is missing "partitions" field')
    found = [_partition(row) for row in partitions.items()]
    duplicate_partitions = duplicates(found)
    if duplicate_partitions:
        raise JsonInputError(
            f"{data_name} contains duplicate partitions: {java_list(duplicate_partitions)}"
        )
    return found


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """The offsets of a delete-records file.

    Raises:
        JsonInputError: it is malformed, or names a partition twice.
    """
    partitions = _versioned(text).optional("partitions")
    if partitions is None:
        raise JsonInputError("Missing partitions field")
    rows = [(_partition(row), row.field("offset").integer(64)) for row in partitions.items()]
    duplicate_partitions = duplicates(tp for tp, _ in rows)
    if duplicate_partitions:
        names = ",".join(map(str, duplicate_partitions))
        raise JsonInputError(f"Offset json file contains duplicate topic partitions: {names}")
    return dict(rows)


def duplicates(values: Iterable[_T]) -> list[_T]:
    """Values that occur more than once, in the order of their first occurrence."""
    counts: dict[_T, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return [value for value, count in counts.items() if count > 1]


def java_list(values: Iterable[object]) -> str:
    """Format values like a Java list."""
    return f"[{', '.join(map(str, values))}]"


def _versioned(text: str) -> JsonNode:
    root = parse_json(text, NOT_JSON)
    version = root.optional("version")
    if version is not None and version.integer() != _VERSION:
        raise JsonInputError(f"Not supported version field value {version.integer()}")
    return root


def _partition(row: JsonNode) -> TopicPartition:
    return TopicPartition(row.field("topic").text(), row.field("partition").integer())
