"""The embedded store of a lone broker, served to further brokers by ZooKeeper's protocol
(`kafkapy.zookeeper.listen`)."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_environment import LOGIN_CONFIG
from kafkapy.common.system import SystemRandom
from kafkapy.zk.embedded.journal import Journal
from kafkapy.zk.service.event_loop import ZooKeeperServer
from kafkapy.zk.service.jaas_users import digest_users
from kafkapy.zk.service.local_client import LocalZooKeeper
from kafkapy.zk.service.settings import REQUIRE_SASL, settings_from
from kafkapy.zk.service.zookeeper_service import ZooKeeperService

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.storage.embedded_store_file import EmbeddedStoreFile

KEY: Final = "kafkapy.zookeeper.listen"
_LIMITS: Final = {"tickTime": "500", "maxSessionTimeout": "60000", "maxClientCnxns": "300"}
"""Sessions from 1 s to 60 s. The brokers choose their timeout by zookeeper.session.timeout.ms. The
128 brokers that `--processes` allows share an address: each may connect again before its previous
connection is closed, and tools connect too."""

logger = logging.getLogger("kafkapy.zookeeper")


class ServedStore(NamedTuple):
    """The broker's own connection to the store. `close` closes both; `on_failure` adds a callback
    for a failure of the store."""

    zookeeper: LocalZooKeeper
    close: Callable[[], Awaitable[None]]
    on_failure: Callable[[Callable[[BaseException], None]], None]


async def open_served_store(
    config: KafkaConfig, address: tuple[str, int], file: EmbeddedStoreFile, clock: Clock
) -> ServedStore:
    """Open the store, serve it at an address, and connect to it without a socket.

    Raises:
        JournalCorrupt: the store's file is damaged.
        OSError: the store's file cannot be written.
        ConfigError: the address cannot be listened on, or the JAAS file cannot be used.
    """
    host, port = address
    users = digest_users(config.properties.get(LOGIN_CONFIG))
    required = {REQUIRE_SASL: "true"} if users else {}
    settings = settings_from({**_LIMITS, **required}, users)
    configs = {"clientPort": str(port), "clientPortAddress": host, "tickTime": _LIMITS["tickTime"]}
    service = ZooKeeperService(Journal(file), clock, SystemRandom(), settings, configs)
    callbacks: list[Callable[[BaseException], None]] = []

    def on_failure(fault: BaseException) -> None:
        for callback in callbacks:
            callback(fault)

    loop = asyncio.get_running_loop()
    server = ZooKeeperServer(service, settings.tick_ms / 1000, loop, on_failure)
    try:
        listener = await server.listen(host, port)
    except OSError as error:
        server.stop()
        file.close()
        raise ConfigError(f"Cannot listen on {KEY}={host}:{port}: {error.strerror}") from error
    logger.info("Serving the embedded store to further brokers at %s:%d", host, port)
    if not users and not _is_loopback(host):
        logger.warning(
            "%s=%s:%d lets everybody who reaches it change the cluster: name a JAAS file with a"
            " section Server in KAFKA_OPTS, or keep others away by a firewall",
            *(KEY, host, port),
        )
    client = LocalZooKeeper(server)

    async def close() -> None:
        await client.close()
        listener.close()
        server.stop()
        file.close()

    return ServedStore(client, close, callbacks.append)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
