"""A broker of the simulation: the production `Broker` in a simulated process and machine.

The disk and the clock's errors belong to the node; a process is one run of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, cast

from kafkapy.common.errors import KafkapyError
from kafkapy.server.broker import Broker
from kafkapy.server.cluster.metadata_connection import MetadataConnection, metadata_connection
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.system import Machine
from kafkapy.zk.kazoo.adapter import KazooZooKeeper
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.short_filesystem import ShortFileSystem
from tests.simulation.events import SECOND_US, WALL_EPOCH_MS
from tests.simulation.kazoo_twin import SimKazooClient
from tests.simulation.network import SimSocket
from tests.simulation.process import Killed
from tests.simulation.sim_filesystem import SimFileSystem

if TYPE_CHECKING:
    import socket

    from kafkapy.common.ports import Clock
    from kafkapy.controller.controller import Controller
    from kafkapy.replication.partition import Partition
    from kafkapy.server.config.listeners import Listener
    from kafkapy.server.counts.zookeeper_metrics import ZooKeeperMetrics
    from kafkapy.storage.filesystem import FileSystem
    from tests.simulation.process import SimProcess
    from tests.simulation.world import World

PORT: Final = 9092
_RESTART_DELAY_US: Final = SECOND_US // 2

BASE_CONFIG: Final = {
    "zookeeper.connect": "zookeeper:2181",
    "zookeeper.session.timeout.ms": "1500",
    "zookeeper.connection.timeout.ms": "10000",
    "log.dirs": "/data",
    "log.segment.bytes": "4096",
    "log.index.size.max.bytes": "1024",
    "log.index.interval.bytes": "256",
    "log.initial.task.delay.ms": "400",
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "log.flush.start.offset.checkpoint.interval.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "700",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.dedupe.buffer.size": "1048576",
    "log.cleaner.backoff.ms": "600000",  # checkers rely on the plan for compaction
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "400",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "1500",
    "controller.socket.timeout.ms": "1500",
    "controlled.shutdown.retry.backoff.ms": "300",
    "leader.imbalance.check.interval.seconds": "4",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "offsets.commit.timeout.ms": "2000",
    "min.insync.replicas": "2",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "250",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
}


class NodeClock:
    """The simulation's time with the offset and the speed of this machine's clocks."""

    def __init__(self, node: Node, booted_ms: int) -> None:
        self._node = node
        self._booted_ms = booted_ms

    def time_ms(self) -> int:
        return self._node.wall_ms()

    def monotonic_ms(self) -> int:
        return self._booted_ms + self._node.elapsed_ms()


def rack_of(broker_id: int) -> str:
    """The rack of a broker, which has no other brokers."""
    return f"rack{broker_id}"


class WorldRandom:
    """Production's random numbers, from the simulation's one source."""

    def __init__(self, world: World) -> None:
        self._random = world.random

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def bytes(self, n: int) -> bytes:
        return self._random.randbytes(n)


class WithoutFaults:
    """Suspends the faults of a node's disk. (A generator-based context manager took 3 % of the time
    of a seed.)"""

    __slots__ = ("_flip", "_left", "_node")

    def __init__(self, node: Node) -> None:
        self._node = node

    def __enter__(self) -> None:
        node = self._node
        self._left, node.short_disk.descriptors_left = node.short_disk.descriptors_left, None
        self._flip, node.disk.flip = node.disk.flip, None

    def __exit__(self, *_: object) -> None:
        self._node.short_disk.descriptors_left, self._node.disk.flip = self._left, self._flip


class Node:
    """Fixed: id, host, disk. `broker` and `process` are those of the current run, or None."""

    def __init__(self, world: World, broker_id: int, config: dict[str, str]) -> None:
        self.broker_id = broker_id
        self.host = f"b{broker_id}"
        self.disk = SimFileSystem(self.wall_ms)
        self.short_disk = ShortFileSystem(self.disk)
        self.faulty_disk = FaultyFileSystem(self.short_disk)  # type: ignore[arg-type]
        self.process: SimProcess | None = None
        self.broker: Broker | None = None
        self.is_serving = False
        self.is_stopping = False
        self._had_failing_disk = False
        self.run_number = 0
        self.last_power_cut_us = -1
        self.on_process_end: Callable[[Node], None] = lambda node: None
        self._world = world
        self._config = config
        self.wall_ahead_ms = world.random.randrange(-400, 400)
        self.drift_permille = 0
        self._kept_objects: list[object] = []
        self._powered_off_process: SimProcess | None = None

    def elapsed_ms(self) -> int:
        """The time since the simulation began, by this machine's clock."""
        return self._world.events.now_us * (1000 + self.drift_permille) // 1_000_000

    def wall_ms(self) -> int:
        """The time of day, by this machine's clock."""
        return WALL_EPOCH_MS + self.wall_ahead_ms + self.elapsed_ms()

    @property
    def is_up(self) -> bool:
        return self.process is not None

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.is_paused

    @property
    def built_broker(self) -> Broker | None:
        """The broker, from the creation of its parts until its process ends."""
        return self.broker if hasattr(self.broker, "controller") else None

    @property
    def acting_controller(self) -> Controller | None:
        """This broker's controller while it acts as the cluster's."""
        broker = self.built_broker
        controller = None if broker is None else broker.controller.controller
        return controller if controller is not None and controller.is_active else None

    def partitions(self) -> list[Partition]:
        """Partitions that this broker hosts now."""
        broker = self.built_broker
        return [] if broker is None else list(broker.replicas.all_partitions())

    @property
    def log_dirs(self) -> list[str]:
        return (BASE_CONFIG | self._config)["log.dirs"].split(",")

    @property
    def has_failed_disk(self) -> bool:
        """Whether it serves without one of its log directories."""
        broker = self.built_broker
        return broker is not None and bool(broker.replicas.log_manager.offline_log_dirs)

    @property
    def is_disk_failing(self) -> bool:
        """Whether changes of one of its directories fail, or did earlier in this run: the broker is
        informed of a failure only after its thread has ended."""
        return self._had_failing_disk or 0 < self.faulty_disk.fail_at <= self.faulty_disk.changes

    def mend_disk(self) -> None:
        """End the failures of its disk: all later changes succeed."""
        self._had_failing_disk = self.is_disk_failing
        self.faulty_disk.fail_at = 0

    def without_faults(self) -> WithoutFaults:
        """Read its disk without the broker's faults, which do not apply to checkers."""
        return WithoutFaults(self)

    # runs

    def start(self) -> None:
        """Begin a run."""
        if self.is_up:
            return
        world = self._world
        self.run_number += 1
        self.faulty_disk.fail_at = 0
        self._had_failing_disk = False
        world.network.powered_off.pop(self.host, None)
        self.process = process = world.process(self.host)
        world.trace.note(self.host, "starts")
        self._spawn(self._run_broker(process))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        process = self.process
        assert process is not None
        process.call_soon(lambda: process.create_task(work).add_done_callback(self._ended))

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Report a start or stop that raised an exception."""
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Killed):
            self._world.fault(self.host, error, "the broker ended")

    async def _run_broker(self, process: SimProcess) -> None:
        world = self._world
        properties = BASE_CONFIG | self._config | {
            "broker.id": str(self.broker_id),
            "broker.rack": rack_of(self.broker_id),
            "listeners": f"PLAINTEXT://{self.host}:{PORT}",
        }  # fmt: skip
        clock = NodeClock(self, world.random.randrange(1, 10**9))
        machine = Machine(clock, WorldRandom(world), self.faulty_disk, _bind, self._connect)
        broker = self.broker = Broker(KafkaConfig(properties), machine)
        self._kept_objects.append(broker)
        try:
            await broker.start()
        except (KafkapyError, OSError) as error:
            world.trace.note(self.host, f"does not start: {type(error).__name__}")
            world.log(self.host, f"does not start: {error}")
            self.exit()
            return
        self.is_serving = True
        world.trace.note(self.host, f"serves, broker epoch {broker._member.broker_epoch}")
        await broker.failed.wait()
        world.trace.note(self.host, "ends by itself: its disk failed")
        if not (self.is_disk_failing or self.is_stopping):
            world.fault(self.host, None, "the broker ends by itself, and its disk is sound")
        world.counts["broker ended by itself"] += 1
        self.exit()

    async def _connect(
        self, config: KafkaConfig, fs: FileSystem, clock: Clock, metrics: ZooKeeperMetrics
    ) -> MetadataConnection:
        ensemble = self._world.ensemble
        client = KazooZooKeeper(
            ZooKeeperClientConfig.from_properties(config.properties),
            lambda *args, **options: SimKazooClient(ensemble, *args, **options),
        )
        await client.connect()
        return metadata_connection(client)

    def stop(self) -> None:
        """Send SIGTERM: a controlled shutdown, then a clean end."""
        broker = self.broker
        if broker is None or not self.is_serving:
            return
        self._world.trace.note(self.host, "is told to stop")
        self.is_serving = False
        self.is_stopping = True

        async def work() -> None:
            await broker.stop()
            self._world.trace.note(self.host, "has stopped cleanly")
            self.exit()

        self._spawn(work())

    def exit(self) -> None:
        """End the process by itself; it is started again later."""
        self.end_process(closes_connections=True)
        self._world.events.after(_RESTART_DELAY_US, self.start)

    def kill(self) -> None:
        """Kill the process as kill -9 does: written data stays."""
        self.end_process(closes_connections=True)

    def cut_power(self, seed: int) -> None:
        """Cut the power: unsynced data is kept, dropped or torn, and no peer is notified."""
        process = self.process
        if process is not None:
            self.end_process(closes_connections=False)
            self._world.network.powered_off[self.host] = None
            # Peers with old connections are notified when the machine is back.
            self._kept_objects.append(process)
            self._powered_off_process = process
        self.disk.crash(seed)
        self.last_power_cut_us = self._world.events.now_us

    def power_on(self) -> None:
        """Boot. The other ends of old connections are notified now."""
        self.start()
        if self._powered_off_process is not None:
            self._world.network.reset_all(self._powered_off_process)
            self._powered_off_process = None

    def end_process(self, closes_connections: bool) -> None:
        process = self.process
        if process is None:
            return
        self.on_process_end(self)
        self._kept_objects.append(process)
        self.process = None
        self.broker = None
        self.is_serving = False
        self.is_stopping = False
        process.kill()
        self._world.network.process_ended(process, closes_connections)
        self.disk.process_ended()
        self.short_disk.descriptors_left = None  # its descriptors are closed

    def pause(self) -> None:
        if self.process is not None:
            self.process.pause()

    def resume(self) -> None:
        if self.process is not None:
            self.process.resume()


def _bind(listener: Listener) -> socket.socket:
    return cast("socket.socket", SimSocket(listener.host, listener.port))
