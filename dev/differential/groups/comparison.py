"""Sequences of operations on groups, on two systems, many groups at a time.

A step is one operation of each group. Its outcome is the answers to the group's members that have
arrived when all connections are quiet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dev.differential.difference import Difference, Outcome
from dev.differential.groups.connections import Activity
from dev.differential.groups.group import Group
from dev.differential.groups.operations import (
    PARTITIONS,
    TOPICS,
    Commit,
    CommitInTransaction,
    DeleteGroup,
    DeleteOffsets,
    Describe,
    FetchOffsets,
    ListStates,
    Operation,
    TimePasses,
    readings,
    sequence,
)
from dev.differential.shrink import shrink
from dev.differential.systems import System

_SHRINK_ATTEMPTS: Final = 16
_REPETITIONS: Final = 2
"""The number of times that a sequence is run alone before a difference counts. The first difference
may be an effect of timing."""


class Found(NamedTuple):
    """A difference at a step."""

    where: str
    outcomes: tuple[Outcome, Outcome]


class SequenceRun:
    """One sequence on both systems.

    It ends at a difference, or when the systems elect different leaders: Apache Kafka elects any
    member, by a hash.
    """

    def __init__(self, operations: Sequence[Operation], pair: tuple[Group, Group]) -> None:
        self.operations = operations
        self.pair = pair
        self.found: Found | None = None
        self.is_over = False
        self._may_end_pending = _may_end_pending(operations)

    def compare(self, number: int, operation: Operation) -> None:
        """Compare the outcomes of a step."""
        outcomes = self.pair[0].arrived(), self.pair[1].arrived()
        if self.pair[0].leader != self.pair[1].leader:
            self.is_over = True  # only the leader's answer has the members
        elif outcomes[0] != outcomes[1]:
            if not self._is_known(operation):
                self.found = Found(f"operation {number}, {operation}", outcomes)
            self.is_over = True

    def _is_known(self, operation: Operation) -> bool:
        """Whether this is a known difference, which the page explains.

        If the last offsets of a group were pending and are deleted, Apache Kafka keeps the group
        until the transaction ends, and has these offsets again after a restart. kafkapy keeps an
        expired offset while another one is pending.
        """
        return self._may_end_pending and isinstance(
            operation, Describe | ListStates | DeleteGroup | DeleteOffsets | FetchOffsets
        )


def _may_end_pending(operations: Sequence[Operation]) -> bool:
    """Whether a deletion, or a commit that expires at once, follows a commit in a transaction."""
    is_pending = False
    for operation in operations:
        match operation:
            case CommitInTransaction():
                is_pending = True
            case DeleteOffsets() | DeleteGroup():
                if is_pending:
                    return True
            case Commit():
                if is_pending and operation.retention_ms > 0:
                    return True
    return False


class GroupComparison:
    """Groups on two systems."""

    def __init__(self, systems: tuple[System, System], name: str) -> None:
        self._systems = systems
        self._name = name
        self._groups = 0
        self.operations = 0
        self.cut_short = 0
        self.differences: list[Difference] = []
        for system in systems:
            for topic in TOPICS:
                system.create(topic, PARTITIONS, {})

    def block(self, seeds: Sequence[int], is_clean: bool) -> None:
        """Run the sequences of all seeds at once; both brokers restart before the last readings."""
        asyncio.run(self._block(seeds, is_clean))

    async def _block(self, seeds: Sequence[int], is_clean: bool) -> None:
        activity = Activity()
        sequence_runs = [self._new_run(sequence(seed), activity) for seed in seeds]
        await self._run(sequence_runs, activity)
        self.cut_short += sum(
            sequence_run.is_over and sequence_run.found is None for sequence_run in sequence_runs
        )
        for seed, sequence_run in zip(seeds, sequence_runs, strict=True):
            if sequence_run.found is not None:
                await self._repeat_alone(seed, sequence_run)
        await asyncio.to_thread(self._restart, is_clean)
        left = [sequence_run for sequence_run in sequence_runs if not sequence_run.is_over]
        for sequence_run in left:
            for group, system in zip(sequence_run.pair, self._systems, strict=True):
                await group.reconnect(system.wire.servers)
            sequence_run.operations = readings()
        await self._run(left, activity)
        for seed, sequence_run in zip(seeds, sequence_runs, strict=True):
            if sequence_run in left and sequence_run.found is not None:
                how = "a clean stop" if is_clean else "kill -9"
                where = f"after {how}: {sequence_run.found.where}"
                self._add(Difference(seed, {}, sequence(seed), where, sequence_run.found.outcomes))
        for sequence_run in sequence_runs:
            await asyncio.gather(*(group.close() for group in sequence_run.pair))

    def _restart(self, is_clean: bool) -> None:
        for system in self._systems:
            system.stop(is_clean)
        for system in reversed(self._systems):  # sessions must not expire while the slower starts
            system.start()

    def _new_run(self, operations: Sequence[Operation], activity: Activity) -> SequenceRun:
        self._groups += 1
        name = f"{self._name}-{self._groups}"
        ours, theirs = (Group(each.wire.servers, name, activity) for each in self._systems)
        return SequenceRun((*operations, *readings()), (ours, theirs))

    async def _run(self, sequence_runs: Sequence[SequenceRun], activity: Activity) -> None:
        """Run all up to their `TimePasses`, then the `TimePasses`, then the steps after it."""
        lengths = [len(sequence_run.operations) for sequence_run in sequence_runs]
        first = [_until_time_passes(sequence_run.operations) for sequence_run in sequence_runs]
        second = [min(end + 1, length) for end, length in zip(first, lengths, strict=True)]
        starts = [0] * len(sequence_runs)
        for ends in (first, second, lengths):
            await self._steps(sequence_runs, starts, ends, activity)
            starts = ends

    async def _steps(
        self,
        sequence_runs: Sequence[SequenceRun],
        starts: Sequence[int],
        ends: Sequence[int],
        activity: Activity,
    ) -> None:
        longest = max((e - s for s, e in zip(starts, ends, strict=True)), default=0)
        for step in range(longest):
            due = [
                (sequence_run, start + step)
                for sequence_run, start, end in zip(sequence_runs, starts, ends, strict=True)
                if start + step < end and not sequence_run.is_over
            ]
            await asyncio.gather(
                *(g.apply(c.operations[number]) for c, number in due for g in c.pair)
            )
            await activity.quiet()
            self.operations += len(due)
            for sequence_run, number in due:
                sequence_run.compare(number, sequence_run.operations[number])

    async def _alone(self, operations: Sequence[Operation]) -> Found | None:
        activity = Activity()
        sequence_run = self._new_run(operations, activity)
        await self._run([sequence_run], activity)
        await asyncio.gather(*(group.close() for group in sequence_run.pair))
        return sequence_run.found

    async def _repeat_alone(self, seed: int, sequence_run: SequenceRun) -> None:
        """Repeat a sequence that differs, alone, and shrink it if it differs each time."""
        operations = sequence(seed)
        for _ in range(_REPETITIONS):
            found = await self._alone(operations)
            if found is None:
                return
        last = [found]
        kept = operations
        loop = asyncio.get_running_loop()

        def fails(fewer: tuple[Operation, ...]) -> bool:
            repeated = asyncio.run_coroutine_threadsafe(self._alone(fewer), loop).result()
            if repeated is not None:
                last[0] = repeated
            return repeated is not None

        kept = await asyncio.to_thread(shrink, operations, fails, _SHRINK_ATTEMPTS)
        self._add(Difference(seed, {}, kept, *last[0]))

    def _add(self, difference: Difference) -> None:
        self.differences.append(difference)
        print(difference.text(), flush=True)


def _until_time_passes(operations: Iterable[Operation]) -> int:
    """The number of operations before the `TimePasses`, or of all operations if there is none."""
    number = -1
    for number, operation in enumerate(operations):
        if isinstance(operation, TimePasses):
            return number
    return number + 1
