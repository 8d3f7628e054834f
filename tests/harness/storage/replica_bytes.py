"""Replicas of stopped brokers, compared byte for byte from the log start to the high watermark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.batch_header import iter_headers
from kafkapy.storage.checkpoints import read_offsets
from kafkapy.storage.filesystem import OsFileSystem


class Batch(NamedTuple):
    """A batch's offsets (`end` is the one after its last) and bytes."""

    base: int
    end: int
    data: bytes


def batches(directory: Path) -> Iterator[Batch]:
    """All batches of a replica's log, segment by segment."""
    for path in sorted(directory.glob("*.log")):
        data = path.read_bytes()
        for position, header in iter_headers(data):
            whole = data[position : position + header.size]
            yield Batch(header.base_offset, header.next_offset, whole)


def highest(log_dirs: Iterable[Path], checkpoint: str) -> dict[TopicPartition, int]:
    """The highest offset that any replica has in its directory's checkpoint of this name."""
    found: dict[TopicPartition, int] = defaultdict(int)
    for log_dir in log_dirs:
        offsets = read_offsets(OsFileSystem(), str(log_dir / checkpoint))
        for partition, offset in offsets.items():
            found[partition] = max(found[partition], offset)
    return found


def differences(
    log_dirs: Mapping[int, list[Path]], assignment: Mapping[TopicPartition, list[int]]
) -> tuple[list[str], int]:
    """Differences of assigned replicas, or to the high watermark; and the number of bytes compared.

    `log_dirs` is by broker id. A broker that was down when its replica was reassigned may keep a
    log that it does not need, as in Kafka.
    """
    problems = []
    compared = 0
    everywhere = [log_dir for found in log_dirs.values() for log_dir in found]
    starts = highest(everywhere, "log-start-offset-checkpoint")
    ends = highest(everywhere, "replication-offset-checkpoint")
    for partition, replica_ids in sorted(assignment.items()):
        start, end = starts[partition], ends[partition]
        name = f"{partition.topic}-{partition.partition}"
        homes = [_home(log_dirs[replica_id], name) for replica_id in replica_ids]
        replicas = {
            home: {b.base: b for b in batches(home) if start <= b.base < end} for home in homes
        }
        reference = replicas[homes[0]]
        for home, replica in replicas.items():
            compared += sum(len(batch.data) for batch in replica.values())
            reached = max((batch.end for batch in replica.values()), default=start)
            if reached < end:
                problems.append(f"{home}: ends at {reached}, high watermark {end}")
            different = [
                base
                for base in sorted(replica.keys() | reference.keys())
                if replica.get(base) != reference.get(base)
            ]
            if different:
                problems.append(
                    f"{home} and {homes[0]} differ in {len(different)} batches, first at offset"
                    f" {different[0]} (high watermark {end})"
                )
    return problems, compared


def _home(log_dirs: list[Path], name: str) -> Path:
    """The directory of a replica, or its expected place if it does not exist."""
    found = [log_dir / name for log_dir in log_dirs if (log_dir / name).is_dir()]
    return found[0] if found else log_dirs[0] / name
