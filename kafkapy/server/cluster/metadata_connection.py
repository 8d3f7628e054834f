"""Connects to the metadata of this broker's cluster: the embedded store, or a ZooKeeper ensemble.

Everything above the `ZooKeeper` port is the same for both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kafkapy.common.errors import LogDirFailure
from kafkapy.storage.embedded_store_file import EMBEDDED_STORE_FILE, EmbeddedStoreFile
from kafkapy.zk.zookeeper import ZooKeeper

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.counts.zookeeper_metrics import ZooKeeperMetrics
    from kafkapy.storage.filesystem import FileSystem
    from kafkapy.zk.kazoo.adapter import KazooZooKeeper


class Close(Protocol):
    """Closes a connection."""

    def __call__(self, limit_s: float | None = None) -> Awaitable[None]: ...


class MetadataConnection(NamedTuple):
    """The port, a function that begins a new session after one expired, and one that closes it.

    `on_session_expired(callback)` registers the callback for an expired session, and
    `on_failure(callback)` the one for a store that can no longer be written. `close(limit_s)`
    limits the wait for the reply to the close request; the default is the usual limit.
    `is_connected()` is False while no server is connected: the session may have expired.
    """

    zookeeper: ZooKeeper
    reconnect: Callable[[], Awaitable[None]]
    close: Close
    on_session_expired: Callable[[Callable[[], None]], None]
    on_failure: Callable[[Callable[[BaseException], None]], None] = lambda _: None
    is_connected: Callable[[], bool] = lambda: True


async def connect(
    config: KafkaConfig, fs: FileSystem, clock: Clock, metrics: ZooKeeperMetrics
) -> MetadataConnection:
    """Open the embedded store in the first log directory, and serve it if
    `kafkapy.zookeeper.listen` is set; or connect to `zookeeper.connect`.

    Raises:
        JournalCorrupt: the embedded store's file is damaged.
        LogDirFailure: the embedded store's file cannot be written.
        ZooKeeperUnavailable: no server answers within `zookeeper.connection.timeout.ms`.
        ConfigError: a `zookeeper.*` key is wrong, or the store's address cannot be listened on.
    """
    if config.is_embedded:
        if config.zookeeper_listen is None:
            return _open_embedded(config, fs, clock)
        return await _open_served(config, config.zookeeper_listen, fs, clock)
    return await _open_remote(config, metrics)


def _open_embedded(config: KafkaConfig, fs: FileSystem, clock: Clock) -> MetadataConnection:
    from kafkapy.zk.embedded.journal import Journal
    from kafkapy.zk.embedded.memory import MemoryServer

    file = EmbeddedStoreFile(fs, _store_path(config))
    try:
        client = MemoryServer(clock, Journal(file)).connect()
    except OSError as error:
        raise _cannot_write(config, error) from error

    async def close(limit_s: float | None = None) -> None:
        await client.close()
        file.close()

    async def reconnect() -> None:
        client.reconnect()

    def set_on_session_expired(callback: Callable[[], None]) -> None:
        client.on_session_expired = callback

    return MetadataConnection(client, reconnect, close, set_on_session_expired)


async def _open_served(
    config: KafkaConfig, address: tuple[str, int], fs: FileSystem, clock: Clock
) -> MetadataConnection:
    from kafkapy.server.cluster.served_store import open_served_store

    file = EmbeddedStoreFile(fs, _store_path(config))
    try:
        store = await open_served_store(config, address, file, clock)
    except OSError as error:
        raise _cannot_write(config, error) from error

    async def close(limit_s: float | None = None) -> None:
        await store.close()

    async def reconnect() -> None:
        """Does nothing: the session does not expire."""

    return MetadataConnection(store.zookeeper, reconnect, close, lambda _: None, store.on_failure)


def _store_path(config: KafkaConfig) -> str:
    return f"{config.log_dirs[0].rstrip('/')}/{EMBEDDED_STORE_FILE}"


def _cannot_write(config: KafkaConfig, error: OSError) -> LogDirFailure:
    message = f"Cannot write {_store_path(config)}: {error.strerror or error}"
    return LogDirFailure(config.log_dirs[0], message)


async def _open_remote(config: KafkaConfig, metrics: ZooKeeperMetrics) -> MetadataConnection:
    # Imported only for an ensemble: a lone broker starts without kazoo.
    from kafkapy.zk.kazoo.adapter import KazooZooKeeper
    from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig

    client = KazooZooKeeper(ZooKeeperClientConfig.from_properties(config.properties))
    client.on_connection_state = lambda state: metrics.set_state(state.value)
    client.on_answer = metrics.latency.add
    await client.connect()
    return metadata_connection(client)


def metadata_connection(client: KazooZooKeeper) -> MetadataConnection:
    """The metadata connection over `client`, which is connected."""

    def set_on_session_expired(callback: Callable[[], None]) -> None:
        client.on_session_expired = callback

    return MetadataConnection(
        client,
        client.reconnect,
        client.close,
        set_on_session_expired,
        is_connected=lambda: client.is_connected,
    )
