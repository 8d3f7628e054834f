"""Several brokers on one ZooKeeper, and the descriptions of their topics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kafkapy.client.cluster import Cluster
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.zookeeper_server import zookeeper_for
from tests.harness.scripted.cli import kafkapy

LIMIT_S = 30.0


class BrokerGroup:
    """Broker processes by id over one ZooKeeper; they are started all at once."""

    def __init__(self, directory: Path, ids: Iterable[int], settings: Mapping[str, str]) -> None:
        self.zookeeper = zookeeper_for(directory)
        common = {"zookeeper.connect": self.zookeeper.connect(), **settings}
        self.brokers = {
            broker_id: BrokerProcess(
                directory / f"broker-{broker_id}", {**common, "broker.id": str(broker_id)}
            )
            for broker_id in ids
        }

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the running brokers."""
        return ",".join(b.bootstrap_servers for b in self.brokers.values() if b.running)

    def start(self, *broker_ids: int) -> None:
        """Start brokers, and wait until each running broker has all of them in its metadata."""
        for broker_id in broker_ids:
            self.brokers[broker_id].launch()
        for broker_id in broker_ids:
            self.brokers[broker_id].wait_until_ready()
        running = {b for b, process in self.brokers.items() if process.running}
        for broker_id in sorted(running):
            with Cluster(self.brokers[broker_id].bootstrap_servers) as cluster:
                for _ in cluster.attempts():
                    if running == cluster.metadata([], refresh=True).brokers.keys():
                        break

    def stop(self, *broker_ids: int) -> None:
        """Stop brokers cleanly, one after the other."""
        for broker_id in broker_ids:
            assert self.brokers[broker_id].stop() == 0

    def describe(self, topic: str) -> str:
        """Output of `kafkapy topics --describe`, a line for each partition, blanks for tabs; or
        its error."""
        words = ("--bootstrap-server", self.bootstrap_servers, "--topic", topic)
        outcome = kafkapy("topics", "--describe", *words)
        if outcome.status != 0:
            return outcome.stdout + outcome.stderr
        lines = [line.split("\t") for line in outcome.stdout.splitlines()[1:]]
        # Kafka 3.9 ends each line with KRaft's columns, which are empty here.
        return "".join(" ".join(cells[2:6]) + "\n" for cells in lines)

    def described(self, topic: str, expected: str) -> str:
        """The topic's description once it is `expected`; at the time limit, the last one seen."""
        seen = [""]

        def is_as_expected() -> bool:
            seen[0] = self.describe(topic)
            return seen[0] == expected

        # The caller compares, and so shows the difference.
        with contextlib.suppress(AssertionError):
            wait_until(is_as_expected, f"{topic} as expected", LIMIT_S)
        return seen[0]

    def __enter__(self) -> BrokerGroup:
        with contextlib.ExitStack() as undo:
            undo.callback(self._end)
            self.zookeeper.start()
            self.start(*self.brokers)
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        for process in self.brokers.values():
            if process.running:
                process.kill()
        self.zookeeper.release()


def running(
    directory: Path, ids: Iterable[int], settings: Mapping[str, str]
) -> Iterator[BrokerGroup]:
    """For a fixture to yield from."""
    with BrokerGroup(directory, ids, settings) as group:
        yield group
