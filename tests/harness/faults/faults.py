"""Faults of a chaos run: each breaks something in the cluster, waits, and heals it.

A seed chooses the faults and their targets. Each returns a description of what it did.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from kafkapy.common.topic_partition import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    TopicPartition,
)
from tests.harness.faults.bad_disk import Disorder
from tests.harness.faults.fault_cluster import (
    ADMIN_LIMIT_S,
    LAG_TIME_MAX_MS,
    SESSION_TIMEOUT_S,
    FaultCluster,
    wait_until,
)
from tests.harness.faults.links import ANYONE, Link, Trouble
from tests.harness.processes.apache_kafka import ApacheBroker
from tests.harness.processes.broker_process import ServerProcess

SINGLE_FAULT_PROBABILITY: Final = 0.6
LEAVE_ISR_LIMIT_S: Final = 30.0
COORDINATOR_PARTITIONS: Final = 4
"""The number of partitions of each internal topic."""
_HALF_OPEN: Final = (Trouble.HOLD, Trouble.HOLD_REQUESTS, Trouble.HOLD_ANSWERS)


class Chaos:
    """Faults on one cluster, which must not affect the records of `topic`."""

    def __init__(self, cluster: FaultCluster, topic: str, partitions: int, seed: int) -> None:
        self.cluster = cluster
        self._topic = topic
        self._partitions = partitions
        self._chance = random.Random(seed)
        self._deck: list[str] = []
        self._clock = threading.Event()  # never set: waits are the length of faults

    def wait(self, seconds: float) -> None:
        self._clock.wait(seconds)

    def run(self, name: str) -> str:
        """Inject the fault of this name, see FAULTS."""
        return f"{name}: {FAULTS[name](self)}"

    def run_each(self, names: Iterable[str]) -> Iterator[str]:
        """Inject these faults in this order, with pauses between them."""
        for name in names:
            yield self.run(name)
            self._calm()

    def _calm(self) -> None:
        self.wait(self._chance.uniform(0.5, 4.0))

    def run_for(self, seconds: float, names: list[str]) -> Iterator[str]:
        """Inject faults with pauses between them; each occurs once before one is repeated."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            yield self.round(names)
            self._calm()

    def round(self, names: list[str]) -> str:
        """Inject the next fault; sometimes one of processes and one of links at the same time."""
        if not self._deck:
            self._deck = self._chance.sample(names, len(names))
        name = self._deck.pop()
        others = [n for n in names if (n in PROCESS_FAULTS) != (name in PROCESS_FAULTS)]
        if not others or self._chance.random() < SINGLE_FAULT_PROBABILITY:
            return self.run(name)
        twin = Chaos(self.cluster, self._topic, self._partitions, self._chance.randrange(10**9))
        with ThreadPoolExecutor(1) as executor:
            other = executor.submit(twin.run, self._chance.choice(others))
            done = self.run(name)
            return f"{done}, with {other.result()}"

    # targets

    def _any_broker(self) -> int:
        return self._chance.choice(sorted(self.cluster.brokers))

    def _leader(self) -> int:
        found = self.cluster.leader(self._topic, self._chance.randrange(self._partitions))
        return found if found in self.cluster.brokers else self._any_broker()

    def _follower(self) -> int:
        partition = self._chance.randrange(self._partitions)
        leader = self.cluster.leader(self._topic, partition)
        return self._chance.choice([b for b in sorted(self.cluster.brokers) if b != leader])

    def _controller(self) -> int:
        found = self.cluster.controller_id()
        return found if found in self.cluster.brokers else self._any_broker()

    def _coordinator(self) -> int:
        """The coordinator of some transactional id, or of some group."""
        for topic in (TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC):
            found = self.cluster.leader(topic, self._chance.randrange(COORDINATOR_PARTITIONS))
            if found in self.cluster.brokers:
                return found
        return self._any_broker()

    # processes

    def _restart(self, ids: list[int], clean: bool) -> str:
        brokers = [self.cluster.brokers[broker_id] for broker_id in ids]
        for broker in brokers:
            if clean:
                self._stop(broker)
            else:
                broker.kill()
        seconds = self._chance.choice([0.0, 0.5, SESSION_TIMEOUT_S * 1.5])
        self.wait(seconds)
        for broker in brokers:
            broker.launch()
        if self._chance.random() < 0.25 and not clean:
            # Kill one again, while it recovers.
            self.wait(self._chance.uniform(0.2, 1.5))
            brokers[0].kill()
        for broker in brokers:
            self.cluster.start_supervised(broker)
        return f"brokers {ids}, down for {seconds:.1f} s"

    @staticmethod
    def _stop(broker: ServerProcess) -> None:
        """Stop a broker. One of Apache Kafka's may not end if its session expires meanwhile: the
        new registration waits for the controller's thread, which has ended."""
        try:
            broker.stop()
        except RuntimeError as failure:  # it was killed
            if not isinstance(broker, ApacheBroker):
                raise
            print(f"  {failure}".partition(";")[0], flush=True)

    def kill(self) -> str:
        return self._restart([self._any_broker()], clean=False)

    def kill_leader(self) -> str:
        return self._restart([self._leader()], clean=False)

    def kill_follower(self) -> str:
        return self._restart([self._follower()], clean=False)

    def kill_controller(self) -> str:
        return self._restart([self._controller()], clean=False)

    def kill_coordinator(self) -> str:
        return self._restart([self._coordinator()], clean=False)

    def kill_two(self) -> str:
        return self._restart(self._chance.sample(sorted(self.cluster.brokers), 2), clean=False)

    def kill_all(self) -> str:
        ids = sorted(self.cluster.brokers)
        self._chance.shuffle(ids)
        return self._restart(ids, clean=False)

    def bounce(self) -> str:
        return self._restart([self._any_broker()], clean=True)

    def bounce_leader(self) -> str:
        return self._restart([self._leader()], clean=True)

    def bounce_controller(self) -> str:
        return self._restart([self._controller()], clean=True)

    def _pause(self, broker_id: int) -> str:
        broker = self.cluster.brokers[broker_id]
        seconds = SESSION_TIMEOUT_S * self._chance.choice([0.5, 1.5, 2.5])
        while_paused(broker, lambda: self.wait(seconds))
        return f"broker {broker_id} for {seconds:.1f} s"

    def pause(self) -> str:
        return self._pause(self._any_broker())

    def pause_leader(self) -> str:
        return self._pause(self._leader())

    def pause_follower(self) -> str:
        return self._pause(self._follower())

    def pause_controller(self) -> str:
        return self._pause(self._controller())

    def pause_coordinator(self) -> str:
        return self._pause(self._coordinator())

    # links between brokers

    def _trouble(self, links: list[tuple[Link, int]], trouble: Trouble, seconds: float) -> None:
        for link, source_pid in links:
            self.cluster.network.set(link, trouble, source_pid)
        self.wait(seconds)
        broken = self._chance.random() < 0.5
        for link, _ in links:
            self.cluster.network.heal(link, broken=broken)

    def _between(self, trouble: Trouble) -> str:
        """Disturb one or both directions between two brokers, or all connections to one."""
        one, other = self._chance.sample(sorted(self.cluster.brokers), 2)
        pid = {broker_id: broker.pid for broker_id, broker in self.cluster.brokers.items()}
        to = self.cluster.internal
        shape = self._chance.choice(["to", "with", "towards"])
        links = {
            "to": [(to[other], pid[one])],
            "with": [(to[other], pid[one]), (to[one], pid[other])],
            "towards": [(to[other], ANYONE)],
        }[shape]
        seconds = LAG_TIME_MAX_MS / 1000 * self._chance.choice([0.3, 1.5, 3.0])
        self._trouble(links, trouble, seconds)
        origin = "all" if shape == "towards" else f"broker {one}"
        return f"{trouble.name} from {origin} {shape} broker {other} for {seconds:.1f} s"

    def cut(self) -> str:
        return self._between(Trouble.CUT)

    def half_open(self) -> str:
        return self._between(self._chance.choice(_HALF_OPEN))

    def delay(self) -> str:
        return self._between(Trouble.DELAY)

    def isolate(self) -> str:
        return self._isolate(self._leader())

    def isolate_controller(self) -> str:
        return self._isolate(self._controller())

    def _isolate(self, alone: int) -> str:
        """Isolate a broker from all other brokers and from ZooKeeper; clients still reach it."""
        pid = self.cluster.brokers[alone].pid
        links = [(link, pid) for link in self.cluster.internal.values()]
        links += [(self.cluster.internal[alone], ANYONE)]
        links += [(self.cluster.to_zookeeper[alone], ANYONE)]
        trouble = self._chance.choice([Trouble.CUT, *_HALF_OPEN])
        seconds = SESSION_TIMEOUT_S * self._chance.choice([1.5, 2.5])
        self._trouble(links, trouble, seconds)
        return f"{trouble.name} around broker {alone} for {seconds:.1f} s"

    # ZooKeeper

    def _zookeeper_link(self, broker_id: int, trouble: Trouble) -> str:
        seconds = SESSION_TIMEOUT_S * self._chance.choice([0.3, 1.5, 2.5])
        self._trouble([(self.cluster.to_zookeeper[broker_id], ANYONE)], trouble, seconds)
        return f"{trouble.name} for broker {broker_id} for {seconds:.1f} s"

    def zk_cut(self) -> str:
        return self._zookeeper_link(self._any_broker(), Trouble.CUT)

    def zk_cut_controller(self) -> str:
        return self._zookeeper_link(self._controller(), Trouble.CUT)

    def zk_half_open(self) -> str:
        return self._zookeeper_link(self._any_broker(), self._chance.choice(_HALF_OPEN))

    def zk_restart(self) -> str:
        self.cluster.zookeeper.kill()
        seconds = self._chance.choice([0.0, SESSION_TIMEOUT_S * 1.5])
        self.wait(seconds)
        self.cluster.zookeeper.start()
        return f"down for {seconds:.1f} s"

    def zk_pause(self) -> str:
        seconds = SESSION_TIMEOUT_S * self._chance.choice([0.5, 1.5])
        self.cluster.zookeeper.pause()
        self.wait(seconds)
        self.cluster.zookeeper.resume()
        return f"for {seconds:.1f} s"

    def _expire(self, broker_id: int) -> str:
        try:
            self.cluster.expire(broker_id)
        except (KazooException, KazooTimeoutError) as error:
            return f"not of broker {broker_id}: {type(error).__name__}"
        return f"the session of broker {broker_id}"

    def expire(self) -> str:
        return self._expire(self._any_broker())

    def expire_controller(self) -> str:
        return self._expire(self._controller())

    # disks

    def _disk(self, disorder: Disorder) -> str:
        """Make the last log directory of a broker misbehave, and restart the broker after that."""
        broker_id = self._any_broker()
        broker, disk = self.cluster.brokers[broker_id], self.cluster.disks[broker_id]
        seconds = self._chance.choice([0.3, 3.0, 8.0])
        disk.misbehave(disorder)
        self.wait(seconds)
        went_on = broker.running
        disk.heal()
        if broker.running and self._chance.random() < 0.5:
            broker.stop()
        elif broker.running:
            broker.kill()
        self.cluster.start_supervised(broker)
        return (
            f"of broker {broker_id} for {seconds:.1f} s, which {'went on' if went_on else 'ended'}"
        )

    def disk_eio(self) -> str:
        return self._disk(Disorder.EIO)

    def disk_full(self) -> str:
        return self._disk(Disorder.ENOSPC)

    def disk_slow(self) -> str:
        return self._disk(Disorder.SLOW)

    def disk_lies(self) -> str:
        """A power cut: all writes since a moment are lost, fsynced or not.

        Kafka may lose records that only this broker had. It stays down until it is in no ISR.
        """
        broker_id = self._any_broker()
        broker, homes = self.cluster.brokers[broker_id], self.cluster.log_dirs[broker_id]
        disk = self.cluster.disks[broker_id]
        disk.misbehave(Disorder.LYING)
        kept = [home.with_name(f"{home.name}.kept") for home in homes]
        for home, copy in zip(homes, kept, strict=True):
            copy_of_live(home, copy)
        self.wait(self._chance.choice([0.5, 3.0, 8.0]))
        broker.kill()
        disk.heal()
        try:
            wait_until(lambda: self.cluster.in_isr(broker_id), LEAVE_ISR_LIMIT_S, "in an ISR")
        except AssertionError as alone:
            outcome = f"nothing was lost: {alone}"
            for copy in kept:
                shutil.rmtree(copy)
        else:
            outcome = "what it had written since was lost"
            for home, copy in zip(homes, kept, strict=True):
                shutil.rmtree(home)
                copy.rename(home)
        self.cluster.start_supervised(broker)
        return f"of broker {broker_id}; {outcome}"

    # actions of operators

    def reassign(self) -> str:
        """Remove a replica of a partition, and add it again with the replicas in another order."""
        partition = self._chance.randrange(self._partitions)
        replicas = self.cluster.assignment()[TopicPartition(self._topic, partition)]
        fewer = self._chance.sample(replicas, max(1, len(replicas) - 1))
        reordered = self._chance.sample(replicas, len(replicas))
        for target in (fewer, reordered):
            self.cluster.reassign(self._topic, {partition: target})
            self._wait_until_reassigned({partition: target})
        return f"partition {partition} from {replicas} to {fewer} to {reordered}"

    def _wait_until_reassigned(self, target: dict[int, list[int]]) -> None:
        wait_until(
            lambda: self.cluster.not_reassigned(self._topic, target),
            ADMIN_LIMIT_S,
            "reassignment not done",
        )

    def elect(self) -> str:
        self.cluster.elect_preferred(self._topic, self._partitions)
        return "all preferred leaders"


FAULTS: Final[dict[str, Callable[[Chaos], str]]] = {
    name.replace("_", "-"): getattr(Chaos, name)
    for name in (
        "kill", "kill_leader", "kill_follower", "kill_controller", "kill_two", "kill_all",
        "bounce", "bounce_leader", "bounce_controller", "pause", "pause_leader", "pause_follower",
        "pause_controller", "cut", "half_open", "delay", "isolate", "isolate_controller",
        "zk_cut", "zk_cut_controller", "zk_half_open", "zk_restart", "zk_pause", "expire",
        "expire_controller", "reassign", "elect", "kill_coordinator", "pause_coordinator",
        "disk_eio", "disk_full", "disk_slow", "disk_lies",
    )
}  # fmt: skip
DISK_FAULTS: Final = {name for name in FAULTS if name.startswith("disk")}


PROCESS_FAULTS: Final = {
    name for name in FAULTS if name.startswith(("kill", "bounce", "pause", "disk"))
}
"""Two of these at a time would start and stop one broker twice."""


def copy_of_live(home: Path, copy: Path) -> None:
    """Copy the log directory of a running broker, without files that vanish meanwhile."""
    for directory, _, files in os.walk(home):
        target = copy / Path(directory).relative_to(home)
        target.mkdir(parents=True)
        for name in files:
            with suppress(FileNotFoundError):
                shutil.copy2(Path(directory) / name, target / name)


def while_paused(broker: ServerProcess, during: Callable[[], object]) -> None:
    """SIGSTOP a broker, do something, SIGCONT it."""
    broker.pause()
    try:
        during()
    finally:
        broker.resume()
