"""Random operations on one partition, or on one group, on kafkapy and on Apache Kafka 3.9.1: the
same outcomes.

Each sequence has a partition of its own. After a block of sequences both brokers are killed or
stopped, and started again; everything is read once more, and the segments on disk are compared. The
first difference of a sequence is shrunk to the operations that it needs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dev.differential.difference import Difference, Outcome
from dev.differential.groups.comparison import GroupComparison
from dev.differential.operations import (
    TOPIC_CONFIGS,
    Batch,
    DeleteRecords,
    ListOffsets,
    Operation,
    Produce,
    readings,
    sequence,
)
from dev.differential.page import Run, write_page
from dev.differential.partition import Partition
from dev.differential.shrink import shrink
from dev.differential.systems import System, both
from kafkapy.common.errors import ApiError, ErrorCode

BLOCK: Final = 100
_SHRINK_ATTEMPTS: Final = 25
_NEVER_MS: Final = 3_600_000
_AT_ONCE_MS: Final = 50
"""Intervals at which brokers check for expired offsets and groups."""


class KnownDifference(Exception):
    """The systems differ for a reason that the page explains; from then on, their logs differ."""


class Comparison:
    """Sequences on two systems."""

    def __init__(self, systems: tuple[System, System], name: str) -> None:
        self._systems = systems
        self._name = name
        self._now_ms = int(time.time() * 1000)
        self._topics = 0
        self.operations = 0
        self.known = 0
        self.differences: list[Difference] = []

    def block(self, seeds: Sequence[int], configs: dict[str, str]) -> None:
        """Run the sequences of seeds, each on a partition of one topic."""
        topic = self._topic(len(seeds), configs)
        pairs = []
        for index, seed in enumerate(seeds):
            pair = self._pair(topic, index)
            operations = sequence(seed)
            try:
                found = self._first_difference(pair, (*operations, *readings()))
            except KnownDifference:
                self.known += 1
                continue
            if found is not None:
                self._report(seed, configs, operations, found)
            else:
                pairs.append((seed, index, pair))
        # Log start offsets are written from time to time, and at a clean stop.
        is_clean = self._topics % 2 == 0
        for system in self._systems:
            system.restart(is_clean)
            system.expect_leaders(topic, len(seeds))
        for seed, index, pair in pairs:
            operations = sequence(seed)
            deletes = any(isinstance(each, DeleteRecords) for each in operations)
            if deletes and not is_clean:
                continue
            for partition, system in zip(pair, self._systems, strict=True):
                partition.reconnect(system.wire)
            found = self._first_difference(pair, readings(not deletes))
            if not deletes:
                found = found or self._on_disk(topic, index, pair)
            if found is not None:
                where = f"after a {'clean stop' if is_clean else 'kill -9'}: {found[0]}"
                self._add(Difference(seed, configs, operations, where, found[1]))
        self._delete(topic)

    def _topic(self, partitions: int, configs: dict[str, str]) -> str:
        self._topics += 1
        topic = f"{self._name}-{self._topics}"
        for system in self._systems:
            system.create(topic, partitions, configs)
        return topic

    def _delete(self, topic: str) -> None:
        for system in self._systems:
            system.delete(topic)

    def _pair(self, topic: str, index: int) -> tuple[Partition, Partition]:
        ours, theirs = (
            Partition(system.wire, topic, index, self._now_ms, f"{topic}-{index}")
            for system in self._systems
        )
        return ours, theirs

    def _first_difference(
        self, pair: tuple[Partition, Partition], operations: Sequence[Operation]
    ) -> tuple[str, tuple[Outcome, Outcome]] | None:
        for number, operation in enumerate(operations):
            outcomes = _outcome(pair[0], operation), _outcome(pair[1], operation)
            self.operations += 1
            if outcomes[0] != outcomes[1] and not _both_refuse(operation, outcomes):
                if _is_known(operation, outcomes):
                    raise KnownDifference
                return f"operation {number}, {operation}", outcomes
        return None

    def _on_disk(
        self, topic: str, index: int, pair: tuple[Partition, Partition]
    ) -> tuple[str, tuple[Outcome, Outcome]] | None:
        found = [
            system.on_disk(topic, index, partition.label)
            for system, partition in zip(self._systems, pair, strict=True)
        ]
        if pair[0].has_refused:
            # Apache Kafka rolls a segment for a batch that it then refuses.
            found = [[("all", sum((rows for _, rows in each), ()))] for each in found]
        ours, theirs = (tuple(each) for each in found)
        return None if ours == theirs else ("the segments on disk", (ours, theirs))

    def _report(
        self,
        seed: int,
        configs: dict[str, str],
        operations: tuple[Operation, ...],
        found: tuple[str, tuple[Outcome, Outcome]],
    ) -> None:
        """Shrink a sequence that fails, and report it."""
        last = [found]

        def fails(fewer: tuple[Operation, ...]) -> bool:
            topic = self._topic(1, configs)
            try:
                repeated = self._first_difference(self._pair(topic, 0), (*fewer, *readings()))
            except KnownDifference:
                repeated = None
            self._delete(topic)
            if repeated is not None:
                last[0] = repeated
            return repeated is not None

        kept = shrink(operations, fails, _SHRINK_ATTEMPTS)
        self._add(Difference(seed, configs, kept, *last[0]))

    def _add(self, difference: Difference) -> None:
        self.differences.append(difference)
        print(difference.text(), flush=True)


def _both_refuse(operation: Operation, outcomes: tuple[Outcome, Outcome]) -> bool:
    """Whether a request with several faults was refused by both, perhaps for different ones."""
    if not isinstance(operation, Produce) or operation.faults < 2:
        return False
    return all(isinstance(outcome[0], int) and outcome[0] > 0 for outcome in outcomes)


def _is_known(operation: Operation, outcomes: tuple[Outcome, Outcome]) -> bool:
    """Whether this is a known difference, which the page explains."""
    ours, theirs = outcomes
    match operation:
        case Produce(batches=[Batch(is_transactional=True)]):
            # A refused batch of the transaction had a lower sequence.
            return (ours[0], theirs[0]) == (0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        case ListOffsets(time) if time >= 0:
            # Apache Kafka's search ends in a segment whose records were deleted.
            return bool(theirs[1] == -1 and ours[1] >= 0)
    return False


def _outcome(partition: Partition, operation: Operation) -> Outcome:
    try:
        return partition.apply(operation)
    except (OSError, ApiError, ValueError, AssertionError) as error:
        return ("no answer", type(error).__name__)


def partition_run(seeds: range, most: int) -> Run:
    """Sequences on partitions, until there are `most` differences."""
    done = 0
    with (
        tempfile.TemporaryDirectory(prefix="kafkapy-differential-") as directory,
        both(Path(directory), {}) as systems,
    ):
        comparison = Comparison(systems, f"run-{seeds.start}")
        for start in range(0, len(seeds), BLOCK):
            block = seeds[start : start + BLOCK]
            comparison.block(block, TOPIC_CONFIGS[block[0] // BLOCK % len(TOPIC_CONFIGS)])
            done += len(block)
            if len(comparison.differences) >= most:
                break
    found = len(comparison.differences)
    return Run(seeds.start, done, comparison.operations, found, comparison.known)


def group_run(seeds: range, most: int) -> Run:
    """Sequences on groups: half of them with offsets and groups that expire at once."""
    run = Run(seeds.start, 0, 0, 0, 0)
    middle = len(seeds) // 2
    for half, interval_ms in ((seeds[:middle], _NEVER_MS), (seeds[middle:], _AT_ONCE_MS)):
        settings = {"offsets.retention.check.interval.ms": str(interval_ms)}
        with (
            tempfile.TemporaryDirectory(prefix="kafkapy-differential-") as directory,
            both(Path(directory), settings) as systems,
        ):
            comparison = GroupComparison(systems, f"groups-{half.start}")
            for start in range(0, len(half), BLOCK):
                block = half[start : start + BLOCK]
                comparison.block(block, is_clean=start // BLOCK % 2 == 0)
                run = run._replace(sequences=run.sequences + len(block))
                if run.differences + len(comparison.differences) >= most:
                    break
        run = run._replace(
            operations=run.operations + comparison.operations,
            differences=run.differences + len(comparison.differences),
            known=run.known + comparison.cut_short,
        )
    return run


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/differential", description=__doc__)
    parser.add_argument("--sequences", type=int, help="10,000, or 1,000 of groups")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--most", type=int, default=10, help="differences after which it ends")
    parser.add_argument("--groups", action="store_true", help="operations on groups instead")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/differential.md")
    given = parser.parse_args()
    started = time.monotonic()
    kind, usual = (group_run, 1_000) if given.groups else (partition_run, 10_000)
    sequences = usual if given.sequences is None else given.sequences
    run = kind(range(given.first, given.first + sequences), given.most)
    run = run._replace(seconds=time.monotonic() - started)
    print(f"differential: {run.summary}")
    if given.write:
        write_page(run, "groups" if given.groups else "result")
    return 1 if run.differences else 0


if __name__ == "__main__":
    sys.exit(main())
