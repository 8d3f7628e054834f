"""Steps of the scenarios of followers: brokers that replicate t-0 with real logs, but no network.

Outcomes: the answer to a fetch, then the changes of each broker: its records, its log start and its
high watermark.
"""

from __future__ import annotations

from pathlib import Path

from kafkapy.record.batch_header import iter_headers
from kafkapy.replication.follower_fetcher import FollowerFetcher
from tests.harness.cores.replicas import BACKOFF_MS, ReplicaSet
from tests.harness.scenarios.interpreter import World, duration_ms, step
from tests.harness.storage.partitions import batch


class FollowersWorld(World):
    """Brokers 1 to 3; the scenario is the controller."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.replicas = ReplicaSet(directory, 3)
        self._last_facts = self.facts()

    def facts(self) -> dict[str, str]:
        facts: dict[str, str] = {}
        for broker_id, broker in self.replicas.brokers.items():
            log = broker.partition.log
            facts[f"broker {broker_id} has"] = " ".join(broker.values)
            facts[f"broker {broker_id} log start"] = str(log.log_start_offset)
            facts[f"broker {broker_id} high watermark"] = str(log.high_watermark)
        return facts

    @step(
        "broker {leader} leads {followers...} in epoch {epoch}",
        "broker {leader} leads {followers...} in epoch {epoch} and appends {values...}",
    )
    def leads(self, leader: str, followers: str, epoch: str, values: str = "") -> None:
        """LeaderAndIsr to these brokers, and not to the others."""
        names = [] if followers == "nobody" else followers.split(" and ")
        self.replicas.elect(int(leader), int(epoch), *map(int, names))
        self.replicas.produce(int(leader), *values.split())

    @step("broker {broker} appends {values...}")
    def appends(self, broker: str, values: str, in_one_batch: str | None = None) -> None:
        if in_one_batch is None:
            self.replicas.produce(int(broker), *values.split())
        else:
            value, count = values.split()[0], len(values.split())
            now_ms = self.replicas.now_ms
            partition = self.replicas.brokers[int(broker)].partition
            records = batch(count=count, value=value.encode())
            partition.append_as_leader(records, 1, now_ms, now_ms, 11)

    @step("broker {broker} fetches")
    def fetches(self, broker: str) -> None:
        self.report(self.replicas.fetch(int(broker)))

    @step("broker {brokers} catches up", "brokers {brokers...} catch up")
    def catch_up(self, brokers: str) -> None:
        """Fetch in turns, as the shell does, until these have everything."""
        for _ in range(10):
            for broker in brokers.split(" and "):
                self._fetch(broker)
            self.replicas.now_ms += BACKOFF_MS
        for broker in brokers.split(" and "):
            self._expect_equal(broker)

    def _fetch(self, broker: str) -> None:
        fetcher, now_ms = self._fetcher(broker), self.replicas.now_ms
        self.replicas.fetch(int(broker))
        leader = self.replicas.brokers[fetcher.leader_id].partition.log
        start, end = leader.log_start_offset, leader.log_end_offset
        for partition in fetcher.out_of_range:
            fetcher.on_leader_offsets(partition.topic_partition, start, end, now_ms)

    def _expect_equal(self, broker: str) -> None:
        """Expect the leader's bytes, and its epochs."""
        leader = self.replicas.brokers[self._fetcher(broker).leader_id].partition.log
        follower = self.replicas.brokers[int(broker)].partition.log
        end = leader.log_end_offset
        copies = [
            log.read(leader.log_start_offset, 1 << 20, end, True) for log in (leader, follower)
        ]
        assert len({bytes(copy.records) for copy in copies}) == 1
        for epoch in {
            header.partition_leader_epoch for _, header in iter_headers(copies[0].records)
        }:
            assert follower.end_offset_for_epoch(epoch) == leader.end_offset_for_epoch(epoch)

    @step("{number} {unit} pass")
    def time_passes(self, number: str, unit: str) -> None:
        self.replicas.now_ms += duration_ms(f"{number} {unit}")

    @step("broker {broker} restarts", "broker {broker} restarts with high watermark {offset}")
    def restarts(self, broker: str, offset: str = "") -> None:
        """The high watermark is read from the checkpoint."""
        if offset:
            self.replicas.brokers[int(broker)].partition.log.update_high_watermark(int(offset))
        self.replicas.brokers[int(broker)].restart()

    @step("broker {broker} deletes the records before {offset}")
    def deletes(self, broker: str, offset: str) -> None:
        self.replicas.brokers[int(broker)].partition.delete_records(int(offset))

    @step("broker {broker} forgets its fetch sessions")
    def drops_fetch_sessions(self, broker: str) -> None:
        self.replicas.brokers[int(broker)].sessions._sessions.clear()

    def _fetcher(self, broker: str) -> FollowerFetcher:
        fetcher = self.replicas.brokers[int(broker)].fetcher
        assert fetcher is not None, f"broker {broker} follows nobody"
        return fetcher
