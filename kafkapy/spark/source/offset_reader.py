"""Reads partitions and their offsets from the cluster, for the driver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from kafkapy.client.cluster import Cluster
from kafkapy.client.metadata import TopicMetadata
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.offsets import EARLIEST, LATEST, Offsets
from kafkapy.spark.source.options import Position, PositionKind, SourceOptions
from kafkapy.spark.workers.engine import cluster_of

T = TypeVar("T")

log: Final = logging.getLogger("kafkapy.spark")


def offset_reader(options: SourceOptions) -> OffsetReader:
    """A reader with this process's connections, which retries according to the `fetchOffset.*`
    options.
    """
    retry_properties = {"retry.backoff.ms": str(options.fetch_offset_retry_interval_ms)}
    return OffsetReader(cluster_of(retry_properties | options.client_properties), options)


class OffsetReader:
    """Reads partitions and offsets. Retries a few times while the cluster changes."""

    def __init__(self, cluster: Cluster, options: SourceOptions) -> None:
        self._cluster = cluster
        self._options = options

    def partitions(
        self, *, must_exist: bool = True, warn: Callable[[str], object] = log.warning
    ) -> list[TopicPartition]:
        """The existing partitions that the options select, sorted. `warn` gets the missing ones, if
        the query goes on without them.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION, with the missing names, if `must_exist`; the
              cluster does not respond, or returns another error for a topic.
        """
        subscription = self._options.subscription
        assigned = subscription.assigned
        names = None if subscription.pattern else subscription.topics or _topics_of(assigned)
        found = self._retry(lambda: self._topics(names))
        pattern = subscription.pattern
        existing = {
            TopicPartition(topic.name, index)
            for topic in found.values()
            if pattern is None or (pattern.fullmatch(topic.name) and not topic.is_internal)
            for index in topic.partitions
        }
        missing = [name for name in names or () if not found[name].partitions]
        missing += [str(tp) for tp in assigned if tp not in existing and tp.topic not in missing]
        if missing:
            message = f"This cluster does not have {', '.join(missing)}"
            if must_exist:
                hint = f"{message}; 'kafkapy topics --list' shows its topics"
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, hint)
            if not self._options.fail_on_data_loss:
                warn(f"{message}. The query goes on, because failOnDataLoss is false.")
        return sorted(existing.intersection(assigned) if assigned else existing)

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The log start offsets. Raises ApiError naming the partition."""
        return self._list(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition], known: Offsets | None = None) -> Offsets:
        """The ends for a consumer: high watermarks or last stable offsets.

        A new leader may still return ends below the offsets in `known` (KAFKA-7703), so the request
        is repeated up to `fetchOffset.numRetries` times.
        """
        timestamps = dict.fromkeys(partitions, LATEST)
        known = known or {}
        found = self._list(timestamps)
        for _ in range(self._options.fetch_offset_retries):
            if all(found[tp] >= known.get(tp, 0) for tp in found):
                break
            self._cluster.pause()
            found = self._list(timestamps)
        return found

    def starting(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The starting offsets of a new query, as numbers.

        Raises:
            ConfigError: a partition is not named, or none of its records is new enough.
            ApiError: the cluster does not respond.
        """
        return self._resolve(self._options.starting, list(partitions), "starting")

    def ending(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The ending offsets of a batch, as numbers. Raises as `starting`."""
        return self._resolve(self._options.ending, list(partitions), "ending")

    def at_timestamp(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> Offsets:
        """The offset of the first record at or after the timestamp, or the end of the partition."""
        found = self._list(dict.fromkeys(partitions, timestamp_ms))
        return found | self.latest(tp for tp, offset in found.items() if offset < 0)

    def _topics(self, names: Sequence[str] | None) -> Mapping[str, TopicMetadata]:
        """The topics of these names (None: all). Raises ApiError, except for unknown topics."""
        found = self._cluster.metadata(names, refresh=True).topics
        for name in names or ():
            error = found[name].error
            if error not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise ApiError(error, f"Topic {name}: {error.name}")
        return found

    def _resolve(self, position: Position, partitions: list[TopicPartition], side: str) -> Offsets:
        if position.common_value is not None:
            offsets = dict.fromkeys(partitions, position.common_value)
        else:
            offsets = position.partitions
            if offsets.keys() != set(partitions):
                raise ConfigError(
                    f"The {side} {position.kind.value} must name all partitions (-1 is latest, -2 "
                    f"earliest). Specified: {_names(offsets)}. Assigned: {_names(partitions)}"
                )
        if position.kind is PositionKind.TIMESTAMPS:
            return self._at_timestamps(offsets, side)
        symbolic = {tp: offset for tp, offset in offsets.items() if offset < 0}
        return offsets | self._list(symbolic)

    def _at_timestamps(self, timestamps: Offsets, side: str) -> Offsets:
        found = self._list(timestamps)
        unmatched = [tp for tp, offset in found.items() if offset < 0]
        if unmatched and side == "starting" and not self._options.latest_if_no_match:
            tp = min(unmatched)
            raise ConfigError(
                f"No offset matched from request of topic-partition {tp} and timestamp "
                f"{timestamps[tp]}. Set startingOffsetsByTimestampStrategy to 'latest' to start at "
                "the end of such partitions."
            )
        return found | self.latest(unmatched)

    def _list(self, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        """Send ListOffsets. The timestamps -1 and -2 mean latest and earliest."""
        if not timestamps:
            return {}

        def send() -> Offsets:
            level = self._options.isolation_level
            results = self._cluster.list_offsets(timestamps, isolation_level=level)
            for tp, result in results.items():
                if result.error is not ErrorCode.NONE:
                    raise ApiError(result.error, f"Offsets of {tp}: {result.reason}")
            return {tp: result.offset for tp, result in results.items()}

        return self._retry(send)

    def _retry(self, send: Callable[[], T]) -> T:
        """Retry up to `fetchOffset.numRetries` times after retriable errors."""
        for _ in range(self._options.fetch_offset_retries):
            try:
                return send()
            except ApiError as error:
                if not error.code.retriable:
                    raise
                log.warning("%s; asking again", error)
            self._cluster.pause()
        return send()


def _topics_of(partitions: Iterable[TopicPartition]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tp.topic for tp in partitions))


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
