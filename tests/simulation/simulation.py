"""One run of a seed, from the first broker's start to the outcome.

    outcome = simulate(7)

A run starts brokers, creates a topic, runs clients under faults, heals, waits until the cluster has
settled, and calls the checkers.
"""

from __future__ import annotations

import gc
import logging
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NoReturn

from kafkapy.common.topic_partition import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TopicPartition,
)
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.zk.stores import paths
from tests.harness.faults.anomalies import Mode
from tests.simulation import share_members
from tests.simulation.admin import Admin
from tests.simulation.checkers.base import Checker, Violation
from tests.simulation.checkers.table import CHECKERS
from tests.simulation.clients import Client, Pipeliner, Producer, Reader, Refused, SeekingReader
from tests.simulation.cluster import RETAINED, TABLE, TOPIC, TRIMMED, Cluster
from tests.simulation.committed_readers import CommittedReader
from tests.simulation.consumer_members import ASSIGNORS, ConsumerMember, Ownership
from tests.simulation.events import SECOND_US
from tests.simulation.faults import Faults
from tests.simulation.group_clients import Committer, ExpiringCommitter, GroupClient, Member
from tests.simulation.history import COPIES, LEDGER
from tests.simulation.node import rack_of
from tests.simulation.plan import Plan, plan_of
from tests.simulation.share_members import ShareGroupProgress, ShareMember
from tests.simulation.tables import CLEANER, TableWriter
from tests.simulation.transactional_clients import (
    CONFIG,
    PARTITIONS,
    LedgerProducer,
    TransactionalClient,
    ledger_specs,
)
from tests.simulation.transformer import Transformer, copies_spec
from tests.simulation.world import World

_START_LIMIT_US: Final = 10 * SECOND_US
_SETTLE_LIMIT_US: Final = 60 * SECOND_US
_EXCUSED_LIMIT_US: Final = 5 * SECOND_US
_CHECK_INTERVAL_US: Final = SECOND_US // 5
_GROUP_MEMBERS: Final = 2
_RETAINED_PRODUCER: Final = 6
_PIPELINER: Final = 7
_TRIMMED_PRODUCER: Final = 8
_TABLE_PRODUCER: Final = 9


@dataclass(slots=True)
class Outcome:
    """Result of a seed. `violation` is empty if it passed; `losses` are those that Kafka allows."""

    seed: int
    digest: str
    violation: str
    tail: list[str]
    counts: Counter[str]
    losses: dict[str, str] = field(default_factory=dict)
    simulated_s: float = 0.0

    def report(self) -> str:
        """For a failed seed: the seed, the trace's tail, the command that repeats it."""
        return "\n".join(
            [
                f"seed {self.seed}: {self.violation}",
                *self.tail,
                f"trace {self.digest}; see it again: scripts/simulate {self.seed}",
            ]
        )


class Simulation:
    """The parts of one run. The seed draws `plan` unless it is given."""

    def __init__(
        self,
        seed: int,
        plan: Plan | None = None,
        echo: Callable[[str], None] | None = None,
        checkers: Sequence[Callable[[Cluster], Checker]] = CHECKERS,
    ) -> None:
        self.world = World(seed, echo)
        if plan is None:
            plan = plan_of(self.world.random)
        self.plan = plan
        if plan.transactional_ids:
            plan.config.update(CONFIG)
            plan.config["transaction.partition.verification.enable"] = str(plan.verifies).lower()
        if plan.compacts:
            plan.config.update(CLEANER)
        if plan.share_members:
            plan.config.update(share_members.CONFIG)
        self.world.network.reset_one_in = self.plan.reset_one_in
        self.world.network.flip_one_in = self.plan.flip_one_in
        self.cluster = Cluster(self.world, self.plan)
        self.cluster.watch(checkers)
        self.admin = Admin(self.cluster)
        self.faults = Faults(self.cluster, self.admin)
        self.producers: list[Producer] = []
        self.readers: list[Reader] = []
        self.group_clients: list[GroupClient] = []
        self.expiring_committers: list[ExpiringCommitter] = []
        self.consumers: list[ConsumerMember] = []
        self.share_members: list[ShareMember] = []
        self.transactional: list[TransactionalClient] = []
        self.committed_readers: list[CommittedReader] = []

    def run(self) -> None:
        """Run all steps. Raises Violation."""
        self.start()
        self._work()
        self._settle()
        self._drain()
        # Changes that the administrator no longer waited for, such as a move, may have begun.
        self._until(lambda: not self.cluster.unsettled(), _SETTLE_LIMIT_US)
        for checker in self.cluster.checkers:
            checker.on_end()

    def end(self) -> None:
        """End all processes."""
        for node in self.world.nodes.values():
            node.end_process(closes_connections=False)
        for process in self.world.processes:
            process.kill()

    # the steps

    def _until(self, condition: Callable[[], bool], limit_us: int) -> bool:
        """Run events until `condition()` is true; False if it is not within `limit_us`."""
        events = self.world.events
        end_us = events.now_us + limit_us
        while events.now_us < end_us:
            events.run_until(min(events.now_us + _CHECK_INTERVAL_US, end_us))
            if condition():
                return True
        return False

    def start(self) -> None:
        """Start the brokers, create the topics, start the clients."""
        world = self.world
        for node in world.nodes.values():
            node.start()
        self.admin.begin(self.admin.create_main_topics())
        self._until(lambda: not self.admin.is_busy, _START_LIMIT_US)
        history = self.cluster.history
        self._start_groups()
        for partition in range(self.plan.partitions):
            number = partition + 1
            self.producers.append(Producer(world, history, number, TOPIC, partition, -1))
            rack = rack_of(self.world.random.choice(list(world.nodes)))
            rack = rack if self.plan.reads_nearby else ""
            reader = Reader(world, history, f"r{number}", TOPIC, partition, Mode.ASSIGN, None, rack)
            self.readers.append(reader)
        self.seeking_reader = SeekingReader(world, history, "rr", TOPIC, 0, Mode.SUBSCRIBE)
        weak = self.plan.partitions + 1
        self.producers.append(Producer(world, history, weak, TOPIC, 0, 1))
        if self.plan.trims:
            self.producers.append(Producer(world, history, _TRIMMED_PRODUCER, TRIMMED, 0, -1))
        if self.plan.compacts:
            self.producers.append(TableWriter(world, history, _TABLE_PRODUCER, TABLE, 0, -1))
        if self.plan.retains:
            self.producers.append(Producer(world, history, _RETAINED_PRODUCER, RETAINED, 0, -1))
        if self.plan.pipelines:
            self.producers.append(Pipeliner(world, history, _PIPELINER, TOPIC, 0, -1))
        if self.plan.transactional_ids:
            self._start_transactions()
        if self.plan.share_members:
            progress = ShareGroupProgress(
                lambda: all(producer.is_done for producer in self.producers)
            )
            self.share_members = [
                ShareMember(world, self.cluster, f"s{i}", TOPIC, progress)
                for i in range(self.plan.share_members)
            ]

    def _start_groups(self) -> None:
        """Start a group without members, a classic group, perhaps a group of the new protocol."""
        world, history, plan = self.world, self.cluster.history, self.plan
        self.group_clients.append(Committer(world, history, "g0", "billing", TOPIC))
        for i in range(1, 1 + _GROUP_MEMBERS):
            name = f"g{i}" if plan.static_members else None
            self.group_clients.append(
                Member(world, history, f"g{i}", "shipping", TOPIC, plan.partitions, name)
            )
        if plan.expires_offsets:
            agree = not (plan.sets_clocks or plan.drifts)
            self.expiring_committers = [
                ExpiringCommitter(world, history, "fg", TOPIC, clocks_agree=agree)
            ]
        if plan.consumers:
            assignors = world.random.choice(ASSIGNORS)
            ownership = Ownership(history, plan.partitions, plan.consumers, assignors)
            self.consumers = [
                ConsumerMember(world, self.cluster, f"m{i}", TOPIC, ownership)
                for i in range(plan.consumers)
            ]

    def _start_transactions(self) -> None:
        """Start producers of each transactional id, and readers of the committed records."""
        world, history, plan = self.world, self.cluster.history, self.plan
        specs = ledger_specs(plan.transactional_ids, plan.rivals, plan.verifies, plan.bumps_epochs)
        for spec in specs:
            for rival in range(plan.rivals):
                host = f"tx{spec.index}{'ab'[rival]}"
                self.transactional.append(LedgerProducer(world, history, host, spec))
        read = [TopicPartition(LEDGER, partition) for partition in range(PARTITIONS)]
        if plan.transforms:
            copies = copies_spec(TOPIC, plan.rivals, plan.bumps_epochs)
            for rival in range(plan.rivals):
                self.transactional.append(Transformer(world, history, f"cp{'ab'[rival]}", copies))
            read.append(TopicPartition(COPIES, 0))
        for at in read:
            reader = CommittedReader(world, history, f"c{at.topic[0]}{at.partition}", at)
            history.ledger_seen[at] = reader.values
            self.committed_readers.append(reader)

    def _work(self) -> None:
        self.faults.start()
        events = self.world.events
        events.run_until(events.now_us + self.plan.faults_us)
        self.faults.stop()

    def _settle(self) -> None:
        """Wait until the clients have finished their work and the cluster has healed."""
        workers: list[Client] = [
            *self.producers, *self.group_clients, *self.expiring_committers, *self.consumers,
            *self.share_members, *self.transactional,
        ]  # fmt: skip
        for worker in workers:
            worker.is_stopping = True
        self.seeking_reader.is_stopping = True
        self.admin.spawn(self.admin.lift_move_limit())

        def is_settled(may_wait: tuple[type[Client], ...] = ()) -> bool:
            return (
                all(worker.is_done or isinstance(worker, may_wait) for worker in workers)
                and not self.admin.is_busy
                and not self.cluster.unsettled()
            )

        if not self._until(lambda: is_settled(self._excused()), _SETTLE_LIMIT_US):
            self.cluster.remaining_problems = self.cluster.unsettled()
        elif not is_settled():
            self._until(is_settled, _EXCUSED_LIMIT_US)
        excused = (*self._excused(), Committer, Member)  # the classic groups' clients
        for worker in workers:
            if not (worker.is_done or isinstance(worker, excused)):
                self._stuck(worker, "which produces, or shares a topic")

    def _excused(self) -> tuple[type[Client], ...]:
        """Clients that may wait for ever for lost state."""
        excused: tuple[type[Client], ...] = ()
        if self._lost_transaction_records():
            excused += (TransactionalClient,)
        if any(at.topic == SHARE_GROUP_STATE_TOPIC for at in self.cluster.history.losses):
            excused += (ShareMember,)  # the group must be reset, as in Kafka
        return excused

    def _lost_transaction_records(self) -> bool:
        """Whether the coordinator's log, or another log that it depends on, had an allowed loss.
        The coordinator may then wait for ever."""
        history = self.cluster.history
        touched = (LEDGER, COPIES, GROUP_METADATA_TOPIC)
        return history.lost_coordinator_records or any(at.topic in touched for at in history.losses)

    def _stuck(self, client: Client, message: str) -> NoReturn:
        reason = "; ".join(self.cluster.unsettled()) or "although all looks well"
        raise Violation("Convergence", f"{client.host}, {message}, is not answered: {reason}")

    def _drain(self) -> None:
        """Read everything once more, and fetch the committed offsets."""
        world, history = self.world, self.cluster.history
        drains = []
        for partition, reader in enumerate(self.readers):
            end = self._log_end(partition)
            reader.end = end
            name = f"d{partition}"
            drains.append(Reader(world, history, name, TOPIC, partition, Mode.SUBSCRIBE, end))
        if self.plan.trims:
            end = self._log_end(0, TRIMMED)
            drains.append(Reader(world, history, "dt", TRIMMED, 0, Mode.SUBSCRIBE, end))
            drains[-1].position = self._log_start(TopicPartition(TRIMMED, 0))
        if self.plan.retains:
            end = self._log_end(0, RETAINED)
            drains.append(Reader(world, history, "dr", RETAINED, 0, Mode.SUBSCRIBE, end))
            drains[-1].position = self._log_start(TopicPartition(RETAINED, 0))
        clients = {client.group: client for client in (*self.group_clients, *self.consumers)}
        for client in clients.values():
            client.spawn(self._fetch_offsets(client))
        self._until(
            lambda: (
                all(reader.is_done for reader in (*self.readers, *drains))
                and set(history.groups) <= set(self.cluster.offsets_found)
            ),
            _SETTLE_LIMIT_US,
        )
        for reader in (*self.readers, *drains):
            if not reader.is_done:
                self._stuck(reader, f"which reads at {reader.position} of {reader.end}")
        if self.transactional and not history.lost_coordinator_records:
            self._drain_ledger()

    def _drain_ledger(self) -> None:
        """Read the committed records up to the end. No transaction may be open any more, except
        where its marker is lost."""
        world, history = self.world, self.cluster.history
        readers = []
        for earlier in self.committed_readers:
            at, end = earlier.at, self._log_end(earlier.at.partition, earlier.at.topic)
            if at not in history.losses:
                earlier.end = end
                reader = CommittedReader(world, history, f"d{earlier.host}", at, end)
                history.ledger[at] = reader.values
                readers += [earlier, reader]
        clients = {client.spec.transactional_id: client for client in self.transactional}
        if history.may_have_lost(GROUP_METADATA_TOPIC, 0):
            clients = {}
        for client in clients.values():
            client.spawn(self._fetch_stable_offset(client))
        found = history.ledger_offsets
        self._until(
            lambda: all(r.is_done for r in readers) and len(found) == len(clients),
            _SETTLE_LIMIT_US,
        )
        for reader in readers:
            if not reader.is_done:
                where = f"{reader.at} at {reader.position} of {reader.end}"
                self._stuck(reader, f"which reads committed records of {where}")
        for name, client in clients.items():
            if name not in found:
                self._stuck(client, "which asks for a stable offset")

    async def _fetch_stable_offset(self, client: TransactionalClient) -> None:
        found = await client.committed_offset()
        self.cluster.history.ledger_offsets[client.spec.transactional_id] = found

    async def _fetch_offsets(self, client: GroupClient) -> None:
        found = self.cluster.offsets_found
        for partition in range(client.partitions):
            name = client.name_of(partition)
            while name not in found:
                try:
                    found[name] = await client.fetch(partition)
                except (NodeUnavailable, Refused):
                    client.lose_coordinator()
                    await client.pause(50, 100)

    def _log_end(self, partition: int, topic: str = TOPIC) -> int:
        # A broker that was cut off while the partition left it still has a log, without readers.
        wanted = TopicPartition(topic, partition)
        assigned = self.cluster.assignment(wanted) or ()
        ends = [
            hosted.log.high_watermark
            for node in self.world.nodes.values()
            for hosted in node.partitions()
            if hosted.topic_partition == wanted and node.broker_id in assigned
        ]
        return max(ends, default=0)

    def _log_start(self, wanted: TopicPartition) -> int:
        """The start of the leader's log."""
        leader = (self.cluster.znode(paths.partition_state(*wanted)) or {}).get("leader")
        starts = [
            hosted.log.log_start_offset
            for node in self.world.nodes.values()
            for hosted in node.partitions()
            if hosted.topic_partition == wanted and node.broker_id == leader
        ]
        return max(starts, default=0)


def simulate(
    seed: int,
    plan: Plan | None = None,
    echo: Callable[[str], None] | None = None,
    checkers: Sequence[Callable[[Cluster], Checker]] = CHECKERS,
) -> Outcome:
    """Run one seed to its outcome."""
    with destructors_held_back():
        return _simulate(seed, plan, echo, checkers)


def _simulate(
    seed: int,
    plan: Plan | None,
    echo: Callable[[str], None] | None,
    checkers: Sequence[Callable[[Cluster], Checker]],
) -> Outcome:
    simulation = Simulation(seed, plan, echo, checkers)
    world = simulation.world
    violation = ""
    with faults_logged(world):
        try:
            simulation.run()
        except Violation as found:
            violation = str(found)
            world.trace.note("violation", violation)
        except Exception as error:  # of a checker or a client; without this no seed is named
            violation = f"the simulator failed: {type(error).__name__}: {error}"
            for line in traceback.format_exc().splitlines():
                world.trace.note("violation", line)
    simulation.end()
    found = simulation.cluster.history.losses
    losses = {str(at): losses[0].reason for at, losses in found.items()}
    return Outcome(
        seed, world.trace.digest(), violation, list(world.trace.tail), world.counts, losses,
        world.events.now_us / 1e6,
    )  # fmt: skip


class _FaultLog(logging.Handler):
    """Log handler that turns tracebacks logged by production code into faults."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.DEBUG if world.is_echoing else logging.ERROR)
        self._world = world
        self._format = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        self._world.log("log", f"{record.name.rpartition('.')[2]}: {record.getMessage()}")
        if record.exc_info and record.exc_info[1] is not None:
            self._world.fault("log", record.exc_info[1], record.getMessage())


@contextmanager
def faults_logged(world: World) -> Iterator[None]:
    root = logging.getLogger()
    handler, level, others = _FaultLog(world), root.level, root.handlers[:]
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO if world.is_echoing else logging.ERROR)
    try:
        yield
    finally:
        root.handlers[:] = others
        root.setLevel(level)


@contextmanager
def destructors_held_back() -> Iterator[None]:
    """Keep destructors from running at moments that the seed does not decide. They run at the end,
    where the complaints of tasks that were killed in the middle of a step are suppressed."""
    gc.disable()
    gc.collect()  # objects that a destructor of the previous seed revived would stay for good
    # Existing objects need no collection at the end, or later: a worker of pytest has frozen its
    # modules and tests, which take 2 s of each full collection.
    gc.freeze()
    complain = sys.unraisablehook
    try:
        yield
        sys.unraisablehook = lambda unraisable: None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
    finally:
        sys.unraisablehook = complain
        gc.enable()
