"""A run: a workload, faults, then healed links, a drain and a verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy.common.topic_partition import TopicPartition
from tests.harness.faults import chaos_workload, former_leaders
from tests.harness.faults.anomalies import Anomalies, History
from tests.harness.faults.chaos_workload import ClientThread, Poller, Reader, Sender, Writer
from tests.harness.faults.fault_cluster import FaultCluster, wait_until
from tests.harness.faults.former_leaders import Leaderships
from tests.harness.storage import replica_bytes

TOPIC = "chaos"
GROUP = "chaos-group"
PARTITIONS = 4
CREATE_LIMIT_S = 60.0
ISR_LIMIT_S = 60.0
DRAIN_LIMIT_S = 120.0
COMMIT_LIMIT_S = 180.0


class Verdict(NamedTuple):
    """Result of a run. `anomalies` has all names, with their cases; `allowed` those that Kafka
    allows."""

    faults: list[str]
    anomalies: Anomalies
    acked: int
    failures: dict[str, int]
    full_isr_s: float
    bytes_compared: int
    failed_starts: list[str]
    allowed: Anomalies

    @property
    def clean(self) -> bool:
        return not any(self.anomalies.values())

    def text(self) -> str:
        """The results in lines, with up to five cases of each anomaly."""
        lines = [
            f"{len(self.faults)} faults, {self.acked} acknowledged records, failed sends"
            f" {self.failures or 'none'}, ISR full after {self.full_isr_s:.1f} s,"
            f" {self.bytes_compared} bytes of replicas compared,"
            f" {len(self.failed_starts)} failed starts"
        ]
        reasons = Counter(re.sub("[0-9]+", "N", reason) for reason in self.failed_starts)
        lines += [f"  failed start, {count} times: {why}" for why, count in reasons.items()]
        lines += [f"  {name}, allowed: {len(cases)}" for name, cases in self.allowed.items()]
        for name, cases in self.anomalies.items():
            lines.append(f"  {name}: {len(cases)}")
            lines += [f"    {case}" for case in cases[:5]]
        return "\n".join(lines)


@contextmanager
def collect_failures(cases: list[str]) -> Iterator[None]:
    """Add a failed assertion to the cases of an anomaly."""
    try:
        yield
    except AssertionError as failure:
        cases.append(str(failure))


def create_topic(
    cluster: FaultCluster,
    topic: str,
    partitions: int,
    rf: int,
    min_isr: int,
    more: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Make a topic, also while the controller changes."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    config = {"min.insync.replicas": str(min_isr), **more}
    wanted = NewTopic(topic, partitions, rf, config=config)

    def lacking() -> list[str]:
        try:
            admin.create_topics([wanted])[topic].result(timeout=30)
        except KafkaException as refused:
            known = refused.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
            return [] if known else [str(refused)]
        return []

    wait_until(lacking, CREATE_LIMIT_S, f"topic {topic} not created")


class Workload:
    """Two producers, one assigned reader of all partitions, a group of two."""

    def __init__(
        self,
        cluster: FaultCluster,
        rate: float,
        topic: str = TOPIC,
        partitions: int = PARTITIONS,
    ) -> None:
        self.cluster = cluster
        self._topic = topic
        self._partitions = partitions
        self.writers: list[Sender] = []
        self.readers: list[Reader] = []
        self._start(rate)

    def _start(self, rate: float) -> None:
        self.history = History()
        cluster = self.cluster
        common = (cluster.bootstrap_servers, self._topic, self._partitions, self.history)
        self.writers += [
            Writer(
                *common,
                rate / 2,
                number,
                cluster.directory / f"writer-{number}.log",
                beside_apache=cluster.is_mixed,
            )
            for number in range(2)
        ]
        self.readers += [
            Reader(Poller(*common, "assigned", beside_apache=cluster.is_mixed)),
            *(
                Reader(Poller(*common, name, GROUP, log=cluster.directory / f"{name}.log"))
                for name in ("member-1", "member-2")
            ),
        ]

    def abandon(self) -> None:
        """End the threads, if `finish` did not."""
        with ExitStack() as ends:
            for thread in self._client_threads():
                ends.callback(thread.abandon)

    def _client_threads(self) -> list[ClientThread]:
        return [*self.writers, *self.readers]

    @property
    def acked(self) -> int:
        return sum(writer.acked for writer in self.writers)

    def wait_for_progress(self, more: int, limit_s: float = 60.0) -> float:
        """Seconds until `more` records have been acknowledged from now on."""
        wanted = self.acked + more

        def lacking() -> list[str]:
            return [] if self.acked >= wanted else [f"{wanted - self.acked} to go"]

        return wait_until(lacking, limit_s, f"no {more} more acknowledged records")

    def finish(self, faults: list[str], leaders: Leaderships | None) -> Verdict:
        """After the faults: wait for full ISRs, drain, stop cleanly, and return the verdict.

        `leaders` is given if the cluster has brokers of Apache Kafka.
        """
        found: Anomalies = {"not-healed": [], "not-ended": [], "lost-position": []}
        found["thread-ended"] = [
            thread.name for thread in self._client_threads() if not thread.is_alive()
        ]
        full_isr_s = -1.0
        with collect_failures(found["not-healed"]):
            full_isr_s = self.cluster.wait_for_full_isr(ISR_LIMIT_S)
        with collect_failures(found["not-healed"]):
            self._drain()
        for thread in self._client_threads():
            with collect_failures(found["not-ended"]):
                thread.stop()
        for reader in self.readers:
            found["lost-position"] += [lost.text for lost in reader.poller.lost_positions]
        found["fatal-producer-error"] = [e for w in self.writers for e in w.fatal_errors]
        assignment = self._compared_partitions()
        # A static member, and one whose LeaveGroup request was lost, expires, which appends a
        # record: this must not happen while one broker after another stops.
        chaos_workload.wait_for_empty_groups(self.cluster.bootstrap_servers)
        self.cluster.stop_brokers()
        found["replicas-differ"], compared = replica_bytes.differences(
            self.cluster.log_dirs, assignment
        )
        failures: Counter[str] = Counter()
        for writer in self.writers:
            failures.update(writer.failures)
        anomalies, allowed = self._judge()
        if leaders is not None:
            self._allow(found, allowed, leaders)
        return Verdict(
            faults,
            {**anomalies, **found},
            self.acked,
            dict(failures),
            full_isr_s,
            compared,
            self.cluster.failed_starts,
            allowed,
        )

    def _drain(self) -> list[int]:
        """Stop the producers, and wait until all records are read. Returns the log ends."""
        for writer in self.writers:
            writer.stop()
        ends = chaos_workload.high_watermarks(
            self.cluster.bootstrap_servers, self._topic, self._partitions
        )
        self._wait_until_read(self.readers, ends)
        return ends

    def _wait_until_read(self, readers: list[Reader], ends: list[int]) -> None:
        pollers = [reader.poller for reader in readers]
        wait_until(lambda: chaos_workload.not_drained(pollers, ends), DRAIN_LIMIT_S, "not drained")

    def _wait_until_committed(self, group: str, topic: str, ends: list[int]) -> list[int]:
        """The group's committed offsets, once they have reached `ends`."""
        found: list[int] = []

        def lacking() -> list[str]:
            servers = self.cluster.bootstrap_servers
            found[:] = chaos_workload.committed(servers, group, topic, self._partitions)
            return [f"{p} at {found[p]} of {end}" for p, end in enumerate(ends) if found[p] < end]

        wait_until(lacking, COMMIT_LIMIT_S, f"offsets of {group} not committed")
        return found

    def _compared_partitions(self) -> dict[TopicPartition, list[int]]:
        """The partitions whose replicas must be equal, byte for byte."""
        return self.cluster.assignment()

    def _allow(self, found: Anomalies, allowed: Anomalies, leaders: Leaderships) -> None:
        """Allow anomalies that Apache Kafka brokers cause: answers of former leaders, and consumers
        that do not close (librdkafka's issues 4362 and 4674: the topic was unknown for a while)."""
        answers = [answer for writer in self.writers for answer in writer.refusals]
        answers += [lost for reader in self.readers for lost in reader.poller.lost_positions]
        leaders.allow(answers, found, allowed)
        closing = {thread.name for thread in self._client_threads() if thread.is_closing}
        for case in list(found["not-ended"]):
            if case.split()[-1] in closing:
                found["not-ended"].remove(case)
                allowed.setdefault("not-ended, in close()", []).append(case)

    def _judge(self) -> tuple[Anomalies, Anomalies]:
        """Anomalies, and those that Kafka allows."""
        return self.history.judge(), {}


def run_on(
    cluster: FaultCluster,
    faults: Callable[[FaultCluster, Workload], Iterable[str]],
    *,
    rf: int = 3,
    min_isr: int = 2,
    rate: float = 400.0,
    topic: str = TOPIC,
    partitions: int = PARTITIONS,
    kind: type[Workload] = Workload,
) -> Verdict:
    """Start a workload, inject `faults`, stop the brokers, and return the verdict."""
    create_topic(cluster, topic, partitions, rf, min_isr)
    with ExitStack() as open_:
        leaders = None
        if cluster.is_mixed:
            leaders = open_.enter_context(former_leaders.watched(cluster, topic, partitions))
        workload = kind(cluster, rate, topic, partitions)
        try:
            workload.wait_for_progress(200)
            done = list(faults(cluster, workload))
            cluster.heal_links()
            return workload.finish(done, leaders)
        except BaseException:
            workload.abandon()
            raise
