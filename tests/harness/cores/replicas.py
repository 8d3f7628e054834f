"""Brokers that replicate one partition to each other without a network: real logs, real cores."""

from __future__ import annotations

from pathlib import Path

from kafkapy.common.errors import ApiError, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.records import iter_records
from kafkapy.replication.fetch_session import FetchPartition, FetchSessionCache
from kafkapy.replication.follower_fetcher import FollowerFetcher, LeaderRow
from kafkapy.replication.partition import Partition
from kafkapy.replication.replication_quota import ReplicationQuota
from kafkapy.storage.log_manager import LogManager
from tests.harness.cores.ports import SeededRandom
from tests.harness.storage.partitions import (
    LAG_MAX_MS,
    TOPIC_ID,
    batch,
    log_manager,
    partition_state,
)

BACKOFF_MS = 1000
TP = TopicPartition("t", 0)


class ReplicaBroker:
    """One broker: its log directory, its partition, and its fetcher if it is a follower."""

    def __init__(self, broker_id: int, directory: Path) -> None:
        self.broker_id = broker_id
        self._directory = directory
        self.quota = ReplicationQuota(broker_id, 1000, 11)
        self.sessions = FetchSessionCache(10, SeededRandom(broker_id))
        self._start()

    def _start(self) -> None:
        self.manager: LogManager = log_manager(self._directory)
        log = self.manager.get_or_create_log(TP, TOPIC_ID, {}, True)
        self.partition = Partition(TP, TOPIC_ID, log, self.broker_id, LAG_MAX_MS)
        self.fetcher: FollowerFetcher | None = None

    def restart(self) -> None:
        """A clean stop and a new start: high watermark and epochs come from the disk."""
        self.manager.shutdown()
        self._start()

    @property
    def values(self) -> list[str]:
        """The values of the records in the log."""
        log = self.partition.log
        read = log.read(log.log_start_offset, 1 << 20, log.log_end_offset, True)
        return [(r.value or b"").decode() for r in iter_records(read.records)]


class ReplicaSet:
    """Brokers 1..n; the test acts as the controller. Time is `now_ms`."""

    def __init__(self, directory: Path, n: int) -> None:
        self.now_ms = 1_000_000
        self.brokers = {i: ReplicaBroker(i, directory / str(i)) for i in range(1, n + 1)}
        self.failures: list[LogDirFailure] = []
        self._partition_epoch = 0

    def elect(self, leader: int, epoch: int, *followers: int) -> None:
        """LeaderAndIsr to the leader and the named followers, all of them in the ISR."""
        self._partition_epoch += 1
        members = (leader, *followers)
        row = partition_state(leader, members, tuple(self.brokers), epoch, self._partition_epoch)
        self.brokers[leader].partition.make_leader(row, self.now_ms)
        self.brokers[leader].fetcher = None
        for broker_id in followers:
            broker = self.brokers[broker_id]
            broker.partition.make_follower(row)
            broker.fetcher = FollowerFetcher(
                leader, 1 << 20, BACKOFF_MS, broker.quota, self.failures.append
            )
            broker.fetcher.follow(broker.partition)

    def produce(self, broker_id: int, *values: str) -> None:
        partition = self.brokers[broker_id].partition
        for value in values:
            partition.append_as_leader(batch(value=value.encode()), 1, self.now_ms, self.now_ms, 11)

    def fetch(self, follower: int) -> str:
        """Run one fetch of a follower. Returns the leader's answer in words."""
        broker = self.brokers[follower]
        fetcher = broker.fetcher
        assert fetcher is not None, f"broker {follower} follows nobody"
        request = fetcher.next_fetch(self.now_ms)
        if request is None:
            return "nothing to fetch"
        leader = self.brokers[fetcher.leader_id]
        try:
            context = leader.sessions.open(
                request.session_id,
                request.session_epoch,
                [
                    FetchPartition(
                        "t", r.topic_id, 0, r.fetch_offset, r.max_bytes, r.current_leader_epoch,
                        r.last_fetched_epoch, r.log_start_offset,
                    )
                    for r in request.rows
                ],
                [(topic_id, tp.partition) for tp, topic_id in request.forgotten],
                uses_topic_ids=True,
                privileged=True,
                now_ms=self.now_ms,
            )  # fmt: skip
        except ApiError as error:
            fetcher.on_response(request, int(error.code), 0, [], self.now_ms, self.now_ms)
            return error.code.name
        [wanted] = context.plan
        row, said = self._read(leader, wanted, follower)
        fetcher.on_response(request, 0, context.session_id, [row], self.now_ms, self.now_ms)
        return said

    def _read(
        self, leader: ReplicaBroker, wanted: FetchPartition, follower: int
    ) -> tuple[LeaderRow, str]:
        try:
            result = leader.partition.read(wanted, follower, 0, wanted.max_bytes, True, self.now_ms)
        except ApiError as error:
            return LeaderRow(TP, int(error.code), -1, -1, None, b""), error.code.name
        said = "ok"
        if result.diverging_epoch:
            said = "diverges in epoch {}, which ends at {}".format(*result.diverging_epoch)
        return (
            LeaderRow(
                TP, 0, result.high_watermark, result.log_start_offset, result.diverging_epoch,
                result.records,
            ),
            said,
        )  # fmt: skip

    def settle(self, *followers: int) -> None:
        """Fetch until every follower has its leader's records and high watermark."""
        for _ in range(20):
            for follower in followers:
                self.fetch(follower)
            self.now_ms += 1
