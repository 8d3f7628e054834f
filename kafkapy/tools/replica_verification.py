"""`replica-verification`: fetches from every replica, and compares them round by round.

A round fetches partitions from all brokers in parallel, from the offset up to which all replicas
are equal. It fetches as many partitions at a time as fit into memory. Kafka:
`ReplicaVerificationTool`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkapy.client.replica_fetch import ReplicaRecords
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.replica_comparison import Difference, ReplicaBatches, compare

MEMORY_BYTES: Final = 64 << 20
"""The largest size of the responses of one round, unless one batch is larger."""

# Fetches records of partitions from one broker, from the given offsets on. With the second
# argument, the broker waits for records if it has none.
Source = Callable[[Mapping[TopicPartition, int], bool], Mapping[TopicPartition, ReplicaRecords]]


@dataclass(slots=True)
class PartitionProgress:
    """One partition. The next round begins at `offset`; the comparison ends at `end_offset`, if
    given.

    `problem` is the reason why the last round made no progress: a replica that returned an error,
    or too few records.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]
    start_offset: int
    end_offset: int | None = None
    offset: int = -1
    batches: int = 0
    differences: list[Difference] = field(default_factory=list)
    problem: str = ""

    def __post_init__(self) -> None:
        self.offset = self.start_offset

    @property
    def is_done(self) -> bool:
        """Whether the whole range was compared."""
        return self.end_offset is not None and self.offset >= self.end_offset

    @property
    def diverged(self) -> bool:
        """Whether the replicas' offsets differ, so that there is no common offset to continue
        from.
        """
        return any(each.field == "offset" for each in self.differences)


class Lag(NamedTuple):
    """The partition with the largest distance from its common offset to its highest high
    watermark.
    """

    messages: int = -1
    partition: TopicPartition | None = None
    offset: int = -1


class Round(NamedTuple):
    """The result of one round. `advanced` is true if a partition made progress."""

    differences: list[Difference]
    lag: Lag
    advanced: bool


class ReplicaVerification:
    """The state of a run over some partitions."""

    def __init__(
        self,
        sources: Mapping[int, Source],
        partitions: Iterable[PartitionProgress],
        pool: Executor,
        fetch_bytes: int,
    ) -> None:
        self._sources = sources
        self._pool = pool
        self.partitions = list(partitions)
        replicas_max = max((len(each.replicas) for each in self.partitions), default=1)
        self._partitions_per_fetch = max(
            1, MEMORY_BYTES // (max(1, fetch_bytes) * max(1, replicas_max))
        )

    @property
    def unfinished(self) -> list[PartitionProgress]:
        """The partitions that another round can advance."""
        return [each for each in self.partitions if not each.is_done and not each.diverged]

    def rounds(self) -> Iterator[Round]:
        """Run rounds over the unfinished partitions, until there are none.

        Only the last fetch of a round waits for records. If each waited, a round over thousands of
        idle partitions would take minutes.
        """
        while chosen := self.unfinished:
            differences: list[Difference] = []
            lag, advanced = Lag(), False
            for at in range(0, len(chosen), self._partitions_per_fetch):
                end = at + self._partitions_per_fetch
                part = self._round(chosen[at:end], waits=end >= len(chosen) and not advanced)
                differences += part.differences
                lag = max(lag, part.lag, key=lambda each: each.messages)
                advanced |= part.advanced
            yield Round(differences, lag, advanced)

    def _round(self, chosen: Sequence[PartitionProgress], *, waits: bool) -> Round:
        responses = self._fetch(chosen, waits=waits)
        differences: list[Difference] = []
        lag, advanced = Lag(), False
        for each in chosen:
            received = _of_partition(each, responses)
            if len(chosen) > 1 and _is_cut_short(each, received):
                received = _of_partition(each, self._fetch([each], waits=False))
            found, high_watermark, has_advanced = _advance(each, received)
            differences += found
            advanced |= has_advanced
            partition_lag = Lag(high_watermark - each.offset, each.partition, each.offset)
            lag = max(lag, partition_lag, key=lambda one: one.messages)
        return Round(differences, lag, advanced)

    def _fetch(
        self, chosen: Sequence[PartitionProgress], *, waits: bool
    ) -> dict[int, Mapping[TopicPartition, ReplicaRecords]]:
        """The response of every broker. A broker without a response has an error for each
        partition.
        """
        wanted: dict[int, dict[TopicPartition, int]] = {}
        for each in chosen:
            for replica in each.replicas:
                wanted.setdefault(replica, {})[each.partition] = each.offset
        futures = {
            b: self._pool.submit(self._fetch_from, b, offsets, waits)
            for b, offsets in wanted.items()
        }
        return {broker: future.result() for broker, future in futures.items()}

    def _fetch_from(
        self, broker: int, offsets: Mapping[TopicPartition, int], waits: bool
    ) -> Mapping[TopicPartition, ReplicaRecords]:
        try:
            return self._sources[broker](offsets, waits)
        except ApiError as error:
            return dict.fromkeys(offsets, ReplicaRecords(error.code, -1, memoryview(b"")))


def _of_partition(
    each: PartitionProgress, responses: Mapping[int, Mapping[TopicPartition, ReplicaRecords]]
) -> dict[int, ReplicaRecords | None]:
    """The response of each replica for one partition."""
    return {replica: responses[replica].get(each.partition) for replica in each.replicas}


def _is_cut_short(each: PartitionProgress, responses: Mapping[int, ReplicaRecords | None]) -> bool:
    """Whether a replica has records to compare, and sent none.

    A broker sends a batch that exceeds the fetch size, or its own limit of the response, only in
    the first partition of the response.
    """
    received = [response for response in responses.values() if response is not None]
    is_readable = len(received) == len(responses) and all(
        response.error is ErrorCode.NONE and response.high_watermark > each.offset
        for response in received
    )
    return is_readable and not all(response.records for response in received)


def _advance(
    each: PartitionProgress, responses: Mapping[int, ReplicaRecords | None]
) -> tuple[list[Difference], int, bool]:
    """(differences, highest high watermark, whether there was progress) from one partition's
    responses.
    """
    received = {
        replica: response for replica, response in responses.items() if response is not None
    }
    high_watermark = max((response.high_watermark for response in received.values()), default=-1)
    each.problem = _problem(each, responses)
    if len(received) < len(responses) or any(response.error for response in received.values()):
        return [], high_watermark, False
    if not any(response.records for response in received.values()):
        # No records below the high watermark: compaction has removed them on every replica.
        readable = min(response.high_watermark for response in received.values())
        has_advanced = readable > each.offset
        each.offset = max(each.offset, readable)
        return [], high_watermark, has_advanced
    replicas = {
        replica: ReplicaBatches(response.high_watermark, response.records)
        for replica, response in received.items()
    }
    found = compare(each.partition, each.offset, replicas)
    has_advanced = found.next_offset > each.offset or bool(found.differences)
    each.offset = found.next_offset
    each.batches += found.batches
    each.differences += found.differences
    return found.differences, high_watermark, has_advanced


def _problem(each: PartitionProgress, responses: Mapping[int, ReplicaRecords | None]) -> str:
    """The reason for a lack of progress: the first replica that prevents it, if one is known."""
    for replica, response in responses.items():
        if response is None:
            return f"replica {replica} sent no response"
        if response.error is not ErrorCode.NONE:
            return f"replica {replica}: {response.error.name}"
        if response.high_watermark <= each.offset:
            return f"replica {replica}'s high watermark is {response.high_watermark}"
        if not response.records:
            return f"replica {replica} has no records at offset {each.offset}"
    return f"a replica has no whole batch at offset {each.offset}"
