"""The parts of a local cluster: its directory, ports and properties, kept in `cluster.json`.

The files of a cluster in DIR:

    DIR/cluster.json                   ports and properties
    DIR/zookeeper/                     ZooKeeper's data, its zookeeper.out
    DIR/broker-ID/server.properties    written at each start, from cluster.json
    DIR/broker-ID/data/                topics
    DIR/broker-ID/logs/                server.log, controller.log and the others
    DIR/broker-ID/kafkaServer.out      the output of the process
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_properties import format_properties
from kafkapy.tools.local.ports import free_port
from kafkapy.tools.local.private_files import check_owner, write_config_privately
from kafkapy.tools.zookeeper.implementations import Implementation

HOST: Final = "127.0.0.1"
FILE: Final = "cluster.json"
FORMAT_VERSION: Final = 1

# The keys that the cluster sets for each broker.
GENERATED_KEYS: Final = (
    "broker.id",
    "node.id",
    "listeners",
    "log.dirs",
    "log.dir",
    "zookeeper.connect",
)

_REPLICATION_FACTORS: Final = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
_MIN_ISR: Final = (
    "min.insync.replicas",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.min.isr",
)
_ZOOKEEPER_TICK_MS: Final = 500


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """A cluster on one machine: its parameters, and the resulting ports by id."""

    directory: Path
    base_port: int
    zookeeper_port: int
    broker_ports: Mapping[int, int] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    zookeeper: str = Implementation.KAFKAPY
    """The implementation whose data is in the directory."""

    @property
    def broker_ids(self) -> list[int]:
        return sorted(self.broker_ports)

    def address(self, broker_id: int) -> str:
        """host:port of a broker."""
        return f"{HOST}:{self.broker_ports[broker_id]}"

    def broker_directory(self, broker_id: int) -> Path:
        return self.directory / f"broker-{broker_id}"

    def log_dir(self, broker_id: int) -> Path:
        """The log directory of a broker."""
        return self.broker_directory(broker_id) / "data"

    def properties_file(self, broker_id: int) -> Path:
        return self.broker_directory(broker_id) / "server.properties"

    def zookeeper_config(self) -> dict[str, str]:
        """ZooKeeper's settings, with short ticks that allow short sessions."""
        return {
            "dataDir": str(self.directory / "zookeeper"),
            "clientPort": str(self.zookeeper_port),
            "clientPortAddress": HOST,
            "tickTime": str(_ZOOKEEPER_TICK_MS),
            "maxSessionTimeout": "60000",
        }

    def broker_properties(self, broker_id: int) -> dict[str, str]:
        """A broker's settings: Kafka's defaults, except settings that make a small cluster safe
        and detect failures quickly.
        """
        factor = min(3, len(self.broker_ports))
        return {
            **dict.fromkeys(_REPLICATION_FACTORS, str(factor)),
            **dict.fromkeys(_MIN_ISR, str(max(1, factor - 1))),
            "group.initial.rebalance.delay.ms": "0",
            "zookeeper.session.timeout.ms": "4000",
            # The last brokers to stop cannot move their leaders to another broker.
            "controlled.shutdown.retry.backoff.ms": "100",
            "kafkapy.log.dir": str(self.broker_directory(broker_id) / "logs"),
            **self.overrides,
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://{self.address(broker_id)}",
            "log.dirs": str(self.log_dir(broker_id)),
            "zookeeper.connect": f"{HOST}:{self.zookeeper_port}",
        }

    def with_changes(
        self,
        brokers: int | None,
        base_port: int | None,
        overrides: Mapping[str, str],
        zookeeper: str | None = None,
    ) -> ClusterLayout:
        """The layout with another number of brokers and additional overrides.

        Raises:
            ConfigError: fewer brokers than before, more than there are ports, other ports, another
              ZooKeeper, or a key that the cluster sets.
        """
        check_overrides(overrides)
        if zookeeper not in (None, self.zookeeper):
            raise ConfigError(
                f"The cluster in {self.directory} keeps its ZooKeeper, which is {self.zookeeper}:"
                " its data is no other's"
            )
        ports = dict(self.broker_ports)
        if base_port is not None and base_port != self.base_port:
            raise ConfigError(
                f"The cluster in {self.directory} keeps its ports, whose base port is"
                f" {self.base_port}"
            )
        if brokers is not None and brokers < len(ports):
            raise ConfigError(
                f"The cluster in {self.directory} has {len(ports)} brokers: it can grow but not"
                f" shrink to {brokers}"
            )
        wanted = brokers or len(ports)
        if self.base_port and not 2 <= self.base_port <= 65536 - wanted:
            raise ConfigError(
                f"There are no {wanted} ports from {self.base_port}, and one below it"
            )
        for broker_id in range(len(ports) + 1, wanted + 1):
            taken = {self.zookeeper_port, *ports.values()}
            ports[broker_id] = _port(self.base_port, broker_id - 1, taken)
        return replace(self, broker_ports=ports, overrides={**self.overrides, **overrides})

    def save(self) -> None:
        """Write `cluster.json` atomically.

        Raises:
            ConfigError: it cannot be written.
        """
        rows = {**asdict(self), "version": FORMAT_VERSION}
        del rows["directory"]
        write_config_privately(self.directory / FILE, f"{json.dumps(rows, indent=2)}\n")


def create(
    directory: Path,
    brokers: int,
    base_port: int,
    overrides: Mapping[str, str],
    zookeeper: str | None = None,
) -> ClusterLayout:
    """A new cluster. ZooKeeper has the port below `base_port`, brokers have the ports from
    `base_port` on. 0 means free ports.

    Raises:
        ConfigError: the number of brokers, the ports or the directory are invalid.
    """
    if brokers < 1:
        raise ConfigError(f"A cluster needs at least one broker, not {brokers}")
    if "," in str(directory):
        raise ConfigError(f"{directory} has a comma, which separates log directories")
    chosen = zookeeper or Implementation.KAFKAPY
    layout = ClusterLayout(directory, base_port, _port(base_port, -1, ()), zookeeper=str(chosen))
    return layout.with_changes(brokers, None, overrides)


def load(directory: Path) -> ClusterLayout | None:
    """The cluster of a directory; None if it has none.

    Raises:
        ConfigError: its file cannot be read, or is malformed; or the directory is that of another
            user in /tmp.
    """
    file = directory / FILE
    try:
        check_owner(directory, "--dir")
        found = json.loads(file.read_text())
        return _decoded(directory, found)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"Cannot read {file}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{file} is damaged ({error}): repair or remove it") from error


def _decoded(directory: Path, found: Any) -> ClusterLayout:
    if found["version"] != FORMAT_VERSION:
        raise ValueError(f"version {found['version']} is not {FORMAT_VERSION}")
    return ClusterLayout(
        directory,
        int(found["base_port"]),
        int(found["zookeeper_port"]),
        {int(broker_id): int(port) for broker_id, port in found["broker_ports"].items()},
        {str(key): str(value) for key, value in found["overrides"].items()},
        # Old files do not have the field: their clusters have Apache's ZooKeeper.
        str(Implementation(found.get("zookeeper", Implementation.APACHE))),
    )


def check_overrides(overrides: Mapping[str, str]) -> None:
    """
    Raises:
        ConfigError: a key that the cluster sets for each broker.
    """
    for key in GENERATED_KEYS:
        if key in overrides:
            raise ConfigError(f"{key} is chosen for each broker: it cannot be overridden")


def server_properties(properties: Mapping[str, str]) -> str:
    """The text of a property file, which Kafka can read too."""
    head = "# Written by kafkapy cluster from cluster.json at each start.\n"
    return head + format_properties(properties)


def _port(base_port: int, offset: int, taken: Collection[int]) -> int:
    """The port at an offset from the base; a free port if the base is 0."""
    if base_port:
        return base_port + offset
    while True:
        port = free_port(HOST)
        if port not in taken:
            return port
