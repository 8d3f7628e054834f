"""The demo's second act: three brokers, three replicas, and a leader killed in mid-stream."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from dev.demo.stage import (
    KAFKAPY,
    PARTITIONS,
    SILENCE_LIMIT_S,
    TOPIC,
    DemoFailure,
    check,
    feed,
    kafkapy,
    out,
    read_back,
    step,
)
from kafkapy.admin.reassignments import list_reassignments
from kafkapy.client.cluster import Cluster
from kafkapy.client.metadata import PartitionMetadata
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest
from kafkapy.tools.local.cluster_layout import load
from kafkapy.tools.local.local_cluster import LocalCluster

LINES_MAX = 20_000
STREAM_S = 6.0
NEWCOMER = 4


def survive(path: Path, scratch: Path) -> None:
    """Run the whole act. All processes are stopped in any case."""
    out.rule("[bold]Second act: a cluster")
    directory = scratch / "cluster"
    where = ("--dir", str(directory))
    try:
        with step("Three brokers over a real ZooKeeper"):
            kafkapy("cluster", "start", *where, "--brokers", "3", "--base-port", "0")
        layout = load(directory)
        assert layout is not None
        _act(path, LocalCluster(layout), where)
        with step("Curtain"):
            kafkapy("cluster", "stop", *where)
    finally:
        if (layout := load(directory)) is not None:
            LocalCluster(layout).stop()


def _act(path: Path, cluster: LocalCluster, where: tuple[str, ...]) -> None:
    servers = cluster.bootstrap_servers
    topic = ("--bootstrap-server", servers, "--topic", TOPIC)
    with step("A topic with every line three times, two of which make an acknowledgement"):
        kafkapy("topics", "--create", *topic, "--partitions", str(PARTITIONS))
        kafkapy("topics", "--describe", *topic)
    with path.open("rb") as stream:
        total = sum(1 for _ in itertools.islice(stream, LINES_MAX))
    with step(f"{total:,} lines stream in; one leader dies on the way and comes back"):
        interrupted_stream = InterruptedStream(path, total, servers, where)
        try:
            sent = feed(interrupted_stream.lines(), total, servers, STREAM_S)
        finally:
            victim = interrupted_stream.wait()
        _until(servers, lambda p: len(p.isr) == len(p.replicas), "in sync again")
        kafkapy("topics", "--describe", *topic)
    with step(f"Broker {NEWCOMER} joins, and broker {victim} hands everything over to it"):
        kafkapy("cluster", "start", *where, "--brokers", str(NEWCOMER))
        _reassign(servers, victim, NEWCOMER)
        kafkapy("topics", "--describe", *topic)
    with step("A preferred election: the first replica of each partition leads"):
        with Cluster(servers) as client:
            client.controller_request(ElectLeadersRequest(topic_partitions=None))
        _until(servers, lambda p: p.leader == p.replicas[0], "led by their first replicas")
        kafkapy("topics", "--describe", *topic)
    with step("What came through"):
        check(sent, read_back(servers, sent.lines))


class InterruptedStream:
    """Yields the first lines of a file, and kills and restarts a broker meanwhile."""

    def __init__(self, path: Path, total: int, servers: str, where: tuple[str, ...]) -> None:
        self._path = path
        self._total = total
        self._servers = servers
        self._where = where
        self._victim = -1
        self._restart: subprocess.Popen[str] | None = None

    def lines(self) -> Iterator[bytes]:
        """The lines. The leader of partition 0 is killed at a quarter, and restarts at the half."""
        with self._path.open("rb") as stream:
            for number, line in enumerate(itertools.islice(stream, self._total)):
                if number == self._total // 4:
                    self._kill()
                if number == self._total // 2:
                    self._bring_back()
                yield line

    def wait(self) -> int:
        """Wait for the restart. Returns the id of the killed broker; -1 if there was no restart."""
        if self._restart is None:
            return -1
        output, _ = self._restart.communicate()
        out.print(f"[green]{output.rstrip()}[/]")
        if self._restart.returncode != 0:
            raise DemoFailure(f"broker {self._victim} did not come back")
        return self._victim

    def _kill(self) -> None:
        with Cluster(self._servers) as client:
            self._victim = client.leader_of(TopicPartition(TOPIC, 0))
        out.print(f"[bold red]kill -9 of broker {self._victim}, which leads partition 0[/]")
        kafkapy("cluster", "kill", str(self._victim), *self._where)

    def _bring_back(self) -> None:
        """Restart the broker in the background, while the stream goes on."""
        words = ["cluster", "restart", str(self._victim), *self._where]
        out.print(f"[dim]$ kafkapy {' '.join(words)}[/]")
        self._restart = subprocess.Popen(
            [KAFKAPY, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )


def _reassign(servers: str, gone: int, newcomer: int) -> None:
    """Replace one broker with another, and wait until the data has moved."""
    with Cluster(servers) as client:
        rows = [
            ReassignablePartition(
                partition_index=row.partition,
                replicas=[newcomer if broker == gone else broker for broker in row.replicas],
            )
            for row in _partitions(client)
        ]
        answer = client.controller_request(
            AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name=TOPIC, partitions=rows)]
            )
        )
        errors = {row.error_code for topic in answer.responses for row in topic.partitions}
        if answer.error_code or errors != {0}:
            raise DemoFailure(f"the reassignment was refused: {answer}")
        for _ in client.attempts():
            if not list_reassignments(client):
                return
    raise DemoFailure("the reassignment does not end")


def _until(
    servers: str, condition: Callable[[PartitionMetadata], bool], condition_name: str
) -> None:
    """Wait until `condition` is true of every partition."""
    with Cluster(servers) as client:
        for _ in client.attempts():
            if all(map(condition, _partitions(client))):
                return
    raise DemoFailure(f"the partitions are not {condition_name} after {SILENCE_LIMIT_S:.0f} s")


def _partitions(client: Cluster) -> list[PartitionMetadata]:
    topic = client.metadata([TOPIC], refresh=True).topics[TOPIC]
    return [topic.partitions[index] for index in sorted(topic.partitions)]
