"""Runs a standalone ZooKeeper server as a process: `zk.service` on an event loop and a disk."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path

import uvloop

from kafkapy.common.errors import ConfigError
from kafkapy.common.system import SystemClock, SystemRandom, raise_open_files_limit
from kafkapy.storage.embedded_store_file import EmbeddedStoreFile
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.tools.zookeeper.server_security import TLS_KEYS, security_of
from kafkapy.zk.embedded.journal import Journal, JournalCorrupt
from kafkapy.zk.service.event_loop import ZooKeeperServer
from kafkapy.zk.service.settings import DATA_FILE, ServiceSettings, ignored_keys
from kafkapy.zk.service.zookeeper_service import ZooKeeperService

logger = logging.getLogger("kafkapy.zookeeper")


def run(config: Mapping[str, str], addresses: Mapping[str, tuple[str, int]]) -> int:
    """Serve the data directory until SIGTERM or SIGINT. Returns the exit status.

    The caller has locked the directory. `addresses` are those of `clientPort` and
    `secureClientPort`.

    Raises:
        ConfigError: a setting is wrong, or the data directory or a port cannot be used.
    """
    settings, tls = security_of(config)
    _configure_logging()
    raise_open_files_limit()
    for key in ignored_keys(config, TLS_KEYS):
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
        status = runner.run(_serve(service, settings, addresses, tls))
    file.close()
    return status


async def _serve(
    service: ZooKeeperService,
    settings: ServiceSettings,
    addresses: Mapping[str, tuple[str, int]],
    tls: ssl.SSLContext | None,
) -> int:
    loop, stopped, failed = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = ZooKeeperServer(service, settings.tick_ms / 1000, loop, lambda _: failed.set())
    listeners = []
    for name, (host, port) in addresses.items():
        try:
            own_tls = tls if name == "secureClientPort" else None
            listeners.append(await server.listen(host, port, own_tls))
        except OSError as error:
            raise ConfigError(f"Cannot listen on {host}:{port}: {error.strerror}") from error
    where = ", ".join(f"{host}:{port}" for host, port in addresses.values())
    logger.info("Serving at %s; the last zxid is %#x", where, service.tree.zxid)
    tasks = [loop.create_task(event.wait()) for event in (stopped, failed)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for listener in listeners:
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
