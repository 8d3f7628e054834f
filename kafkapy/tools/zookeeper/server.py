"""A standalone ZooKeeper server as a process: `zk.service` on an event loop and a disk.

All requests that arrive in one turn of the loop are handled, then made durable by one fsync, then
answered. The fsync blocks the loop: what arrives meanwhile is the next turn's. If the disk refuses,
the process ends, and nobody hears of what was not written.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

import uvloop

from kafkapy.common.errors import ConfigError
from kafkapy.common.system import SystemClock, SystemRandom, raise_open_files_limit
from kafkapy.storage.embedded_store_file import EmbeddedStoreFile
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.zk.embedded.journal import Journal, JournalCorrupt
from kafkapy.zk.service.connection import Connection
from kafkapy.zk.service.settings import (
    DATA_FILE,
    ServiceSettings,
    settings_from,
    without_effect,
)
from kafkapy.zk.service.zookeeper_service import ZooKeeperService

_FAREWELL_S: Final = 5.0
_BACKLOG: Final = 256

logger = logging.getLogger("kafkapy.zookeeper")


class ZooKeeperServer:
    """The service on an event loop: turns, ticks and connections."""

    def __init__(
        self,
        service: ZooKeeperService,
        tick_s: float,
        loop: asyncio.AbstractEventLoop,
        failed: asyncio.Event,
    ) -> None:
        self.service = service
        self._tick_s = tick_s
        self._loop = loop
        self._failed = failed
        self._protocols: dict[Connection, ClientProtocol] = {}
        self._turn_is_due = False
        self._ticking = loop.call_later(tick_s, self._tick)

    def accepts(self, protocol: ClientProtocol, address: str, port: int) -> Connection | None:
        """A connection for a client, if it may have one more."""
        connection = self.service.connected(address, port)
        if connection is not None:
            self._protocols[connection] = protocol
        return connection

    def forget(self, connection: Connection) -> None:
        """A connection is gone."""
        del self._protocols[connection]
        self.service.disconnected(connection)

    def call_turn(self) -> None:
        """End this turn of the loop with a commit."""
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def stop(self) -> None:
        """Close all connections; sessions outlive them."""
        self._ticking.cancel()
        self._turn()
        for protocol in list(self._protocols.values()):
            protocol.end()

    def _turn(self) -> None:
        self._turn_is_due = False
        if self._failed.is_set():
            return
        try:
            ready = self.service.commit()
        except OSError as error:
            logger.error("Cannot write the journal, so this server ends: %s", error)
            self._failed.set()
            return
        except BaseException:
            # Without a commit nobody would be answered any more.
            self._failed.set()
            raise
        for connection in ready:
            protocol = self._protocols.get(connection)
            if protocol is not None:
                protocol.flush()

    def _tick(self) -> None:
        self._ticking = self._loop.call_later(self._tick_s, self._tick)
        self.service.tick()
        self.call_turn()


class ClientProtocol(asyncio.Protocol):
    """One client. Nothing is read from it while it has not read what it was sent."""

    def __init__(self, server: ZooKeeperServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None
        self._may_write = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("", 0)
        self._connection = self._server.accepts(self, peer[0], peer[1])
        if self._connection is None:
            self._transport.abort()
        else:
            self._connection.unsent = self._unsent

    def data_received(self, data: bytes) -> None:
        if self._connection is not None:
            self._server.service.received(self._connection, data)
            self._server.call_turn()

    def pause_writing(self) -> None:
        self._may_write = False
        self._read_or_not()

    def resume_writing(self) -> None:
        self._may_write = True
        self._read_or_not()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._server.forget(self._connection)
            self._connection = None
            self._server.call_turn()

    def flush(self) -> None:
        """Send what is queued; then close, or see to what waits for its turn."""
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or transport.is_closing():
            return
        if data := connection.take():
            transport.write(data)
        if connection.is_closing:
            self.end()
        else:
            self._read_or_not()

    def end(self) -> None:
        """Close once everything is sent; a client that does not read is cut off."""
        transport = self._transport
        if transport is not None:
            transport.close()
            self._loop.call_later(_FAREWELL_S, transport.abort)

    def _unsent(self) -> int:
        transport = self._transport
        if transport is None or transport.is_closing():
            return 0
        return transport.get_write_buffer_size()

    def _read_or_not(self) -> None:
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or transport.is_closing():
            return
        if self._may_write and not connection.is_stalled:
            transport.resume_reading()
        else:
            transport.pause_reading()
        if self._may_write and connection.is_stalled:
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self._connection is not None and self._connection.is_stalled:
            self._server.service.go_on(self._connection)
            self._server.call_turn()


def run(config: Mapping[str, str], host: str, port: int) -> int:
    """Serve the data directory, which is the caller's, until SIGTERM or SIGINT; the exit status.

    Raises:
        ConfigError: a setting is wrong, or the data directory or the port cannot be used.
    """
    settings = settings_from(config)
    _configure_logging()
    raise_open_files_limit()
    for key in without_effect(config):
        logger.info("%s has no effect on this server", key)
    path = Path(config["dataDir"]) / DATA_FILE
    file = EmbeddedStoreFile(OsFileSystem(), str(path))
    try:
        service = ZooKeeperService(Journal(file), SystemClock(), SystemRandom(), settings, config)
    except (OSError, JournalCorrupt) as error:
        raise ConfigError(f"Cannot use {path}: {error}") from error
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        status = runner.run(_life(service, settings, host, port))
    file.close()
    return status


async def _life(service: ZooKeeperService, settings: ServiceSettings, host: str, port: int) -> int:
    loop, stopped, failed = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = ZooKeeperServer(service, settings.tick_ms / 1000, loop, failed)
    try:
        listener = await loop.create_server(
            lambda: ClientProtocol(server, loop), host, port, backlog=_BACKLOG
        )
    except OSError as error:
        raise ConfigError(f"Cannot listen on {host}:{port}: {error.strerror}") from error
    logger.info("Serving at %s:%d; the last zxid is %#x", host, port, service.tree.zxid)
    waiting = [loop.create_task(event.wait()) for event in (stopped, failed)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
    listener.close()
    server.stop()
    logger.info("Stopped")
    return 1 if failed.is_set() else 0


def _configure_logging() -> None:
    logging.basicConfig(
        stream=sys.stdout,
        level=logging.INFO,
        format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)",
    )
