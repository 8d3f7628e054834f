"""ZooKeeper and N brokers whose links can fail, one by one.

Each broker has a CLIENT listener, which is direct, and an INTERNAL one, which is advertised
through a link; it reaches ZooKeeper through a link of its own.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from kafkapy.client.cluster import Cluster
from kafkapy.common.topic_partition import TopicPartition
from tests.harness.faults import bad_disk
from tests.harness.faults.bad_disk import BadDisk
from tests.harness.faults.links import Link, Network
from tests.harness.processes.apache_kafka import ApacheBroker
from tests.harness.processes.broker_process import POLL_S, BrokerProcess, ServerProcess, free_port
from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.zookeeper_server import zookeeper_for

SESSION_TIMEOUT_S = 3.0
LAG_TIME_MAX_MS = 3000
PREFERRED = "/admin/preferred_replica_election"
ADMIN_LIMIT_S = 120.0

SETTINGS = {
    "zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000)),
    "replica.lag.time.max.ms": str(LAG_TIME_MAX_MS),
    "offsets.topic.replication.factor": "3",
    "log.segment.bytes": "4194304",
    "log.cleaner.enable": "false",  # the replicas are compared byte for byte
    "auto.create.topics.enable": "false",
    "controlled.shutdown.enable": "true",
    "controlled.shutdown.retry.backoff.ms": "500",
    "replica.socket.timeout.ms": "6000",
    "controller.socket.timeout.ms": "6000",
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT",
}


Kind = Callable[[Path, Mapping[str, str], ServerProcess], ServerProcess]
"""Creates a broker on a directory with its properties and its ZooKeeper."""


def kafkapy_broker(home: Path, properties: Mapping[str, str], _: ServerProcess) -> ServerProcess:
    """A broker of this working tree."""
    return BrokerProcess(home, properties)


class FaultCluster:
    """Brokers 1 to N.

    `brokers`, `log_dirs` and the links `internal`, `to_zookeeper` and `clients` are by broker id.
    Without `client_links`, there are no links for clients. The brokers of the ids in `apache` are
    Apache Kafka's; with any of these, the cluster `is_mixed`. With `bad_disks`, the last log
    directory of each broker is one of `disks`.
    """

    def __init__(
        self,
        directory: Path,
        size: int,
        overrides: Mapping[str, str],
        *,
        client_links: bool = False,
        log_dirs: int = 1,
        apache: Collection[int] = (),
        own_zookeeper: bool = False,
        bad_disks: bool = False,
    ) -> None:
        self.directory = directory
        self.is_mixed = bool(apache)
        self.failed_starts: list[str] = []
        directory.mkdir(parents=True, exist_ok=True)
        self._open = ExitStack()
        self.network = self._open.enter_context(Network(self._pids))
        self.zookeeper = (
            OwnZooKeeper(directory / "zookeeper") if own_zookeeper else zookeeper_for(directory)
        )
        ids = range(1, size + 1)
        self.internal: dict[int, Link] = {}
        self.to_zookeeper: dict[int, Link] = {}
        self.clients: dict[int, Link] = {}
        self.brokers: dict[int, ServerProcess] = {}
        self.log_dirs: dict[int, list[Path]] = {}
        self.disks: dict[int, BadDisk] = {}
        library = bad_disk.compiled(directory) if bad_disks else None
        for broker_id in ids:
            client, internal, proxied, zookeeper, outside = (free_port() for _ in range(5))
            if client_links:
                self.clients[broker_id] = self.network.link(outside, client)
            served = outside if client_links else client
            home = directory / f"broker-{broker_id}"
            more = [directory / f"broker-{broker_id}-{n}" for n in range(2, log_dirs + 1)]
            self.log_dirs[broker_id] = [home, *more]
            self.internal[broker_id] = self.network.link(proxied, internal)
            self.to_zookeeper[broker_id] = self.network.link(zookeeper, self.zookeeper.port)
            listeners = "CLIENT://127.0.0.1:{},INTERNAL://127.0.0.1:{}"
            properties = {
                **SETTINGS,
                **overrides,
                "broker.id": str(broker_id),
                "log.dirs": ",".join(map(str, self.log_dirs[broker_id])),
                "listeners": listeners.format(client, internal),
                "advertised.listeners": listeners.format(served, proxied),
                "zookeeper.connect": f"127.0.0.1:{zookeeper}{self.zookeeper.chroot}",
            }
            kind: Kind = ApacheBroker if broker_id in apache else kafkapy_broker
            broker = self.brokers[broker_id] = kind(home, properties, self.zookeeper)
            broker.port, broker.bootstrap_servers = client, f"127.0.0.1:{served}"
            if library is not None:
                last = self.log_dirs[broker_id][-1]
                disk = BadDisk(library, directory / f"disk-{broker_id}", last)
                self.disks[broker_id], broker.environment = disk, disk.environment
        self.bootstrap_servers = ",".join(b.bootstrap_servers for b in self.brokers.values())

    def __enter__(self) -> Self:
        try:
            self.zookeeper.start()
            for broker in self.brokers.values():
                broker.launch()
            for broker in self.brokers.values():
                broker.wait_until_ready()
            for broker in self.brokers.values():
                self._wait_until_informed(broker)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wait_until_informed(self, broker: ServerProcess) -> None:
        """Wait until a broker's metadata has all brokers and a controller.

        A broker of Apache Kafka serves clients before it has any, and an admin client of librdkafka
        that finds no controller retries only after half a minute.
        """
        with Cluster(broker.bootstrap_servers) as cluster:
            for _ in cluster.attempts():
                found = cluster.metadata([], refresh=True)
                if found.brokers.keys() == self.brokers.keys() and found.controller_id >= 0:
                    return
        raise RuntimeError(f"{broker.bootstrap_servers} does not know all brokers")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in self.brokers.values():
            if server.running:
                server.kill()
        self.zookeeper.release()
        self._open.close()

    def start_supervised(self, broker: ServerProcess, limit_s: float = 60.0) -> None:
        """Start a broker, and start it again when it ends, as a supervisor does.

        A broker must end while ZooKeeper is away. `failed_starts` has the reasons.

        Raises RuntimeError after the limit.
        """
        deadline = time.monotonic() + limit_s
        while True:
            try:
                if not broker.running:
                    broker.launch()
                broker.wait_until_ready()
                return
            except RuntimeError as ended:
                lines = [line for line in str(ended).splitlines() if "Hint: " not in line]
                self.failed_starts.append(lines[-1])
                if time.monotonic() > deadline:
                    raise

    def replace_broker(self, broker_id: int, kind: Kind, *, clean: bool) -> None:
        """Stop or kill a broker, and start one of another kind on its directory."""
        old = self.brokers[broker_id]
        assert isinstance(old, BrokerProcess | ApacheBroker)
        if clean:
            old.stop()
        else:
            old.kill()
        new = kind(old.log_dir, old.properties, self.zookeeper)
        new.port, new.bootstrap_servers = old.port, old.bootstrap_servers
        self.brokers[broker_id] = new
        self.start_supervised(new)
        self.wait_for_full_isr()

    def _pids(self) -> list[int]:
        return [broker.pid for broker in self.brokers.values() if broker.running]

    def heal_links(self) -> None:
        for link in self.links():
            self.network.heal(link, broken=True)

    def links(self) -> list[Link]:
        """All links."""
        return [*self.internal.values(), *self.to_zookeeper.values(), *self.clients.values()]

    def stop_brokers(self) -> None:
        """Stop all brokers cleanly, one after another."""
        for broker in self.brokers.values():
            broker.stop()

    # state in ZooKeeper

    @contextmanager
    def client(self, **options: Any) -> Iterator[KazooClient]:
        """A ZooKeeper client for a short while, on a connection without faults."""
        client = KazooClient(self.zookeeper.connect(), timeout=10, **options)
        try:
            client.start(timeout=10)
            yield client
        finally:
            client.stop()
            client.close()

    def znode(self, path: str) -> dict[str, Any] | None:
        """The JSON of a znode; None if there is none or ZooKeeper does not answer."""
        try:
            with self.client() as client:
                found: dict[str, Any] = json.loads(client.get(path)[0])
                return found
        except (NoNodeError, KazooTimeoutError, KazooException):
            return None

    def controller_id(self) -> int | None:
        found = self.znode("/controller")
        return None if found is None else int(found["brokerid"])

    def controller_epoch(self) -> int:
        """The epoch of the last elected controller."""
        with self.client() as client:
            return int(client.get("/controller_epoch")[0])

    def registered(self) -> list[int]:
        with self.client() as client:
            return sorted(map(int, client.get_children("/brokers/ids")))

    def broker_epoch(self, broker_id: int) -> int:
        """The czxid of a broker's registration; -1 while it has none."""
        with self.client() as client:
            stat = client.exists(f"/brokers/ids/{broker_id}")
        return -1 if stat is None else int(stat.czxid)

    def state(self, topic: str, partition: int) -> dict[str, Any]:
        """`leader`, `isr`, `leader_epoch`... of a partition."""
        return self.znode(f"/brokers/topics/{topic}/partitions/{partition}/state") or {}

    def leader(self, topic: str, partition: int) -> int:
        return int(self.state(topic, partition).get("leader", -1))

    def assignment(self) -> dict[TopicPartition, list[int]]:
        """The replicas of every partition."""
        found = {}
        with self.client() as client:
            for topic in client.get_children("/brokers/topics"):
                state = json.loads(client.get(f"/brokers/topics/{topic}")[0])
                for partition, replicas in state["partitions"].items():
                    found[TopicPartition(topic, int(partition))] = replicas
        return found

    def incomplete_isrs(self) -> list[str]:
        """Partitions of all topics whose ISR is not their assignment, as text."""
        lacking = []
        with self.client() as client:
            for topic in sorted(client.get_children("/brokers/topics")):
                path = f"/brokers/topics/{topic}"
                assignment = json.loads(client.get(path)[0])["partitions"]
                for partition, replicas in sorted(assignment.items()):
                    state = json.loads(client.get(f"{path}/partitions/{partition}/state")[0])
                    if sorted(state["isr"]) != sorted(replicas) or state["leader"] < 0:
                        lacking.append(f"{topic}-{partition}: {state}, replicas {replicas}")
        return lacking

    def in_isr(self, broker_id: int) -> list[str]:
        """Partitions of all topics that have a broker in their ISR, as text."""
        found = []
        with self.client() as client:
            for topic in client.get_children("/brokers/topics"):
                for partition in client.get_children(f"/brokers/topics/{topic}/partitions"):
                    path = f"/brokers/topics/{topic}/partitions/{partition}/state"
                    if broker_id in json.loads(client.get(path)[0])["isr"]:
                        found.append(f"{topic}-{partition}")
        return found

    def wait_for_full_isr(self, limit_s: float = 60.0) -> float:
        """Seconds until every ISR is full. Raises AssertionError after the limit."""
        return wait_until(self.incomplete_isrs, limit_s, "ISR not full")

    # requests to the controller, by znodes

    def reassign(self, topic: str, target: Mapping[int, list[int]]) -> None:
        """Start to move partitions to these replicas. `not_reassigned` shows the progress.

        Raises AssertionError while another reassignment is under way.
        """
        rows = [{"topic": topic, "partition": p, "replicas": r} for p, r in target.items()]
        self._ask("/admin/reassign_partitions", rows)

    def not_reassigned(self, topic: str, target: Mapping[int, list[int]]) -> list[str]:
        """Unfinished parts of a reassignment, as text."""
        found = (self.znode(f"/brokers/topics/{topic}") or {}).get("partitions", {})
        wrong = [p for p, replicas in target.items() if found.get(str(p)) != replicas]
        under_way = self.znode("/admin/reassign_partitions") is not None
        return [f"partition {p}: {found.get(str(p))}" for p in wrong] + [
            "the znode is still there"
        ] * under_way

    def elect_preferred(self, topic: str, partitions: int) -> None:
        """Elect the preferred leader of each partition; returns when all were tried."""
        self._ask(PREFERRED, [{"topic": topic, "partition": p} for p in range(partitions)])
        wait_until(
            lambda: ["the znode is still there"] * (self.znode(PREFERRED) is not None),
            ADMIN_LIMIT_S,
            "preferred replica election not done",
        )

    def _ask(self, path: str, rows: list[dict[str, Any]]) -> None:
        with self.client() as client:
            try:
                client.create(path, json.dumps({"version": 1, "partitions": rows}).encode())
            except NodeExistsError as error:
                raise AssertionError(f"{path} is there already") from error

    def expire(self, broker_id: int) -> None:
        """End a broker's ZooKeeper session, as the server does after its timeout."""
        with self.client() as client:
            stat = client.exists(f"/brokers/ids/{broker_id}")
        if stat is not None:
            session_id = stat.ephemeralOwner
            with self.client(client_id=(session_id, session_password(session_id))):
                pass  # a client with the session's password may close it


def session_password(session_id: int) -> bytes:
    """The password that ZooKeeper gives a session (`ZooKeeperServer.generatePasswd`).

    The first 16 bytes of `java.util.Random` seeded with the id and a constant of the server.
    """
    seed = ((session_id ^ 0xB3415C00) ^ 0x5DEECE66D) & (1 << 48) - 1
    password = bytearray()
    for _ in range(4):
        seed = (seed * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        password += (seed >> 16 & 0xFFFFFFFF).to_bytes(4, "little")
    return bytes(password)


def wait_until(lacking: Callable[[], list[str]], limit_s: float, what: str) -> float:
    """Seconds until `lacking()` is empty. Raises AssertionError with the items that remain."""
    start = time.monotonic()
    left = ["not asked yet"]
    pause = threading.Event()
    while True:
        try:
            left = lacking()
        except (KazooException, KazooTimeoutError) as error:
            left = [f"ZooKeeper: {error!r}"]
        if not left:
            return time.monotonic() - start
        if time.monotonic() - start > limit_s:
            raise AssertionError(f"{what} after {limit_s:.0f} s: " + "; ".join(left[:8]))
        pause.wait(10 * POLL_S)
