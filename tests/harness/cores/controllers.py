"""Brokers with their controllers over one ZooKeeper in memory, stepped by hand.

Commands of a controller are recorded in `sent` as lines of text. They are answered with success,
as by a healthy broker, unless the test answers them. Brokers remember their replicas. A broker can
be set to die after any of its steps: a write to ZooKeeper or a command sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from kafkapy.common.cluster_state import (
    BrokerInfo,
    CommandResult,
    Endpoint,
    LeaderAndIsrCommand,
    StopReplicaCommand,
    TopicDescription,
    UpdateMetadataCommand,
)
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.controller.config import ControllerConfig
from kafkapy.controller.controller import Controller
from kafkapy.controller.events import (
    AlterPartition,
    AlterPartitionItem,
    Event,
    LeaderAndIsrResponse,
    SessionExpired,
    Startup,
    StopReplicaResponse,
)
from kafkapy.metadata.cache import MetadataCache
from kafkapy.zk.embedded.memory import MemoryServer, MemoryZooKeeper
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import Check, Multi, Op, OpResult, Request, Response
from tests.harness.cores.ports import CountingRandom, ManualClock
from tests.harness.cores.znodes import run, server


def topic_id(number: int) -> Uuid:
    """A topic id that is easy to recognize."""
    return Uuid(number.to_bytes(16, "big"))


class Died(Exception):
    """A broker's process ended in the middle of its work."""


class SteppedZooKeeper(MemoryZooKeeper):
    """A session that calls `on_write` after each write."""

    def __init__(self, ensemble: MemoryServer, on_write: Callable[[], None]) -> None:
        super().__init__(ensemble)
        self._on_write = on_write

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        results = await super().multi(ops)
        if not all(isinstance(op, Check) for op in ops):
            self._on_write()
        return results

    async def pipeline(self, requests: Sequence[Request]) -> list[Response]:
        answers: list[Response] = []
        for request in requests:
            answers += await super().pipeline([request])
            if isinstance(request, Multi) and isinstance(answers[-1], list):
                self._on_write()
        return answers


class Broker:
    """One broker: its session, its controller and event queue, and the commands that it sends."""

    def __init__(self, cluster: Cluster, broker_id: int, rack: str | None) -> None:
        self.cluster = cluster
        self.info = BrokerInfo(broker_id, (Endpoint("PLAINTEXT", f"h{broker_id}", 9092),), rack)
        self.zookeeper: MemoryZooKeeper = SteppedZooKeeper(cluster.server, self._wrote)
        self.store = ZkStore(self.zookeeper)
        self.events: deque[Event] = deque()
        self.config = ControllerConfig(broker_id)
        self.controller = Controller(
            self.config,
            self.store,
            self,
            self.events.append,
            cluster.clock,
            CountingRandom(),
        )
        self.metadata = MetadataCache()
        self.broker_epoch = -1
        # Replicas on its disks, with the last leader epoch received (-1: none since the start).
        self.replicas: dict[TopicPartition, int] = {}
        self.steps = 0
        self.dies_after: int | None = None

    @property
    def broker_id(self) -> int:
        return self.info.broker_id

    def start(self) -> None:
        """Register and take part in elections."""
        self.broker_epoch = run(self.store.brokers.register(self.info, 0))
        self.events.append(Startup())

    def restart(self) -> None:
        """Start a new process, which has no state, with a new session."""
        self.metadata = MetadataCache()
        self.replicas = dict.fromkeys(self.replicas, -1)
        self.zookeeper.reconnect()
        self.start()

    def die(self) -> None:
        """End the session; queued events are lost with the process."""
        self.dies_after = None
        self.cluster.server.end_session(self.zookeeper.session_id)
        self.events.clear()
        run(self.controller.handle(SessionExpired()))

    def _wrote(self) -> None:
        for observe in self.cluster.observers:
            observe()
        self._step()

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.dies_after:
            raise Died

    # BrokerSender

    def add_broker(self, broker: BrokerInfo, broker_epoch: int) -> None:
        self.cluster.sent.append(f"{broker.broker_id} add")

    def remove_broker(self, broker_id: int) -> None:
        self.cluster.sent.append(f"{broker_id} remove")

    def send_leader_and_isr(self, broker_id: int, command: LeaderAndIsrCommand) -> None:
        for row in command.partitions:
            new = " new" if row.is_new else ""
            self.cluster.sent.append(
                f"{broker_id} LeaderAndIsr {row.topic_partition} leader={row.state.leader}"
                f" isr={_ids(row.state.isr)} epoch={row.state.leader_epoch}"
                f" version={row.state.partition_epoch} replicas={_ids(row.replicas)}{new}"
            )
            held = self.cluster.brokers[broker_id].replicas
            if broker_id in row.replicas:
                known = held.get(row.topic_partition, -1)
                held[row.topic_partition] = max(known, row.state.leader_epoch)
        errors = {
            row.topic_partition: self.cluster.error_of(broker_id, row.topic_partition)
            for row in command.partitions
        }
        result = CommandResult(ErrorCode.NONE, errors)
        self._answer(LeaderAndIsrResponse(broker_id, command.broker_epoch, result))
        self._step()

    def send_update_metadata(self, broker_id: int, command: UpdateMetadataCommand) -> None:
        rows = [f"{r.topic}-{r.partition}:{r.state.leader}" for r in command.partitions]
        live = _ids(tuple(b.broker_id for b in command.live_brokers))
        self.cluster.sent.append(" ".join([f"{broker_id} UpdateMetadata live={live}", *rows]))
        self.cluster.brokers[broker_id].metadata.apply(command)
        self._step()

    def send_stop_replica(self, broker_id: int, command: StopReplicaCommand) -> None:
        errors = {}
        for row in command.partitions:
            delete = " delete" if row.delete else ""
            partition = TopicPartition(row.topic, row.partition)
            self.cluster.sent.append(
                f"{broker_id} StopReplica {partition} epoch={row.leader_epoch}{delete}"
            )
            errors[partition] = self.cluster.error_of(broker_id, partition)
            held = self.cluster.brokers[broker_id].replicas
            is_fenced = 0 <= row.leader_epoch < held.get(partition, -1)
            if row.delete and not is_fenced and errors[partition] is ErrorCode.NONE:
                held.pop(partition, None)
        result = CommandResult(ErrorCode.NONE, errors)
        self._answer(StopReplicaResponse(broker_id, command, result))
        self._step()

    def _answer(self, event: LeaderAndIsrResponse | StopReplicaResponse) -> None:
        if event.broker_id not in self.cluster.silent:
            self.events.append(event)


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids)) or "-"


class Cluster:
    """The whole cluster. `settle` runs every controller until no event is left."""

    def __init__(self, *broker_ids: int, racks: dict[int, str] | None = None) -> None:
        self.clock = ManualClock()
        self.server = server()
        self.sent: list[str] = []
        self.silent: set[int] = set()
        # Called after each write of a broker to ZooKeeper.
        self.observers: list[Callable[[], None]] = []
        self.errors: dict[tuple[int, TopicPartition], ErrorCode] = {}
        self.brokers: dict[int, Broker] = {}
        observer = ZkStore(self.server.connect())
        run(observer.create_persistent_paths())
        self.store = observer
        for broker_id in broker_ids:
            self.brokers[broker_id] = Broker(self, broker_id, (racks or {}).get(broker_id))
            self.brokers[broker_id].start()
            self.settle()
        self.take()

    @property
    def controller(self) -> Controller:
        """The acting controller."""
        (active,) = [b.controller for b in self.brokers.values() if b.controller.is_active]
        return active

    def error_of(self, broker_id: int, partition: TopicPartition) -> ErrorCode:
        """The error code with which a broker answers for one partition."""
        return self.errors.get((broker_id, partition), ErrorCode.NONE)

    def settle(self) -> None:
        """Handle every queued event of every broker, round by round."""
        steps = 0
        while any(broker.events for broker in self.brokers.values()):
            for broker in self.brokers.values():
                if broker.events:
                    self.step(broker)
            steps += 1
            assert steps < 10_000, "the controllers never come to rest"

    def step(self, broker: Broker) -> None:
        """Handle one event of a broker, which may die while it does so."""
        try:
            run(broker.controller.handle(broker.events.popleft()))
        except Died:
            broker.die()

    def submit(self, event: Event) -> None:
        """Give an event to the acting controller and settle."""
        broker = next(b for b in self.brokers.values() if b.controller.is_active)
        broker.events.append(event)
        self.settle()

    def alter_isr(self, topic: str, isr: tuple[int, ...], partition: int = 0) -> None:
        """Propose an ISR as the leader of a partition, and run the controllers."""
        state = self.controller.context.leadership[TopicPartition(topic, partition)]
        wish = AlterPartitionItem(
            topic, topic_id(0), partition, state.leader_epoch, isr, 0, state.partition_epoch
        )
        epoch = self.brokers[state.leader].broker_epoch
        self.submit(AlterPartition(state.leader, epoch, [wish], lambda _: None))

    def catch_up(self) -> None:
        """Live followers with their leader's epoch catch up; leaders add them to the ISR."""
        while joined := [found for p in self._led() if (found := self._followers(p))]:
            for partition, isr in joined:
                if self._followers(partition) == (partition, isr):
                    self.alter_isr(partition.topic, isr, partition.partition)

    def _led(self) -> list[TopicPartition]:
        context = self.controller.context
        return [p for p, s in sorted(context.leadership.items()) if s.leader in context.broker_ids]

    def _followers(
        self, partition: TopicPartition
    ) -> tuple[TopicPartition, tuple[int, ...]] | None:
        """The ISR with the followers that could join it; None if there are none."""
        context = self.controller.context
        state = context.leadership.get(partition)
        if state is None or not context.has_partition(partition):
            return None
        joining = tuple(
            replica
            for replica in context.assignment(partition).replicas
            if replica not in state.isr
            and context.is_replica_online(replica, partition)
            and self.brokers[replica].replicas.get(partition) == state.leader_epoch
        )
        return (partition, (*state.isr, *joining)) if joining else None

    def kill(self, broker_id: int) -> None:
        """Kill a broker, and run the controllers."""
        self.brokers[broker_id].die()
        self.settle()

    def restart(self, broker_id: int) -> None:
        """Restart a broker, and run the controllers."""
        self.brokers[broker_id].restart()
        self.settle()

    def create_topic(
        self, name: str, assignment: dict[int, tuple[int, ...]], number: int = 7
    ) -> None:
        """Write a topic's znode, and run the controllers."""
        run(self.store.topics.create(TopicDescription(name, topic_id(number), assignment)))
        self.settle()

    def delete_topic(self, name: str) -> None:
        """Request a topic's deletion, and run the controllers."""
        run(self.store.requests.request_topic_deletion(name))
        self.settle()

    def take(self) -> list[str]:
        """Everything that the controllers have sent since the last call."""
        taken, self.sent = self.sent, []
        return taken

    def take_of(self, *words: str) -> list[str]:
        """Of the lines sent since the last call, those with one of these words."""
        return [line for line in self.take() if any(word in line for word in words)]

    def state(self, topic: str, partition: int = 0) -> str:
        """`leader isr leader_epoch version` of a partition, from ZooKeeper."""
        wanted = TopicPartition(topic, partition)
        state = run(self.store.topics.states([wanted]))[wanted]
        return (
            f"{state.leader} [{_ids(state.isr)}] epoch={state.leader_epoch}"
            f" version={state.partition_epoch}"
        )

    def data(self, path: str) -> str:
        """A znode's data as text."""
        return run(self.store.zookeeper.get(path)).data.decode()

    def paths(self, under: str) -> list[str]:
        """Every path under one."""
        return sorted(p for p in self.server.tree.nodes if p.startswith(under))
