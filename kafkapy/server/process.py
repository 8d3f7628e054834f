"""The process around a broker: its limits, its log, its signals."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from typing import Final

import uvloop

from kafkapy.common import service_manager
from kafkapy.common.errors import ConfigError
from kafkapy.common.system import raise_open_files_limit
from kafkapy.server import gc_tuning
from kafkapy.server.broker import Broker
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.observability.log4j_layout import configure_logging

logger = logging.getLogger("kafka.server.KafkaServer")

# A broker that serves already waits only for its metadata, and then can stop cleanly.
_END_OF_START_LIMIT_S: Final = 10.0
_RETURN_MEMORY_S: Final = 60.0
_INPUT_BYTES: Final = 4096


async def run_until_stopped(broker: Broker) -> int:
    """Start, wait for a signal or a fatal failure, and stop. Returns the exit status.

    Only the first SIGTERM, SIGINT or SIGHUP has an effect. During the start, it cancels the start,
    with status 1 as with Apache Kafka: the start may take any time if ZooKeeper is unavailable.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # as by nohup
            loop.add_signal_handler(number, stop.set)
    stop_requested = loop.create_task(_wait_for(stop))
    failed = loop.create_task(_wait_for(broker.failed))
    try:
        if not await _start(broker, stop_requested, failed):
            return 1
        service_manager.notify(service_manager.READY)
        await asyncio.wait([stop_requested, failed], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop_requested.cancel()
        failed.cancel()
    if broker.failed.is_set():
        return 1
    service_manager.notify(service_manager.STOPPING)
    await broker.stop()
    return 0


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()


async def _start(
    broker: Broker, stop_requested: asyncio.Task[None], failed: asyncio.Task[None]
) -> bool:
    """Start the broker. Returns False if it failed, or a signal came before it had started."""
    starting = asyncio.get_running_loop().create_task(broker.start())
    await asyncio.wait([starting, stop_requested, failed], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done() and broker.is_serving and not failed.done():
        await asyncio.wait(
            [starting, failed], timeout=_END_OF_START_LIMIT_S, return_when=asyncio.FIRST_COMPLETED
        )
    if starting.done():
        await starting
        return True
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    if failed.done():  # the end of the process ends its session, as for a running broker
        return False
    await broker.abandon()
    logger.warning("The broker was told to stop before it had started")
    return False


def _stop_at_eof() -> None:
    """Treat the end of standard input as a SIGTERM: the process at its other end has ended.

    Raises:
        ConfigError: standard input is a file, or is closed.
    """
    refused = "--until-eof needs a pipe or a terminal as standard input"
    if sys.stdin is None:
        raise ConfigError(refused)
    loop, source = asyncio.get_running_loop(), sys.stdin.fileno()

    def on_readable() -> None:
        if not os.read(source, _INPUT_BYTES):
            loop.remove_reader(source)
            signal.raise_signal(signal.SIGTERM)

    try:
        loop.add_reader(source, on_readable)
    except PermissionError:
        raise ConfigError(refused) from None


async def _return_memory() -> None:
    while True:
        await asyncio.sleep(_RETURN_MEMORY_S)
        await asyncio.to_thread(gc_tuning.return_free_memory)


def run(properties: Mapping[str, str], until_eof: bool = False) -> int:
    """Run a broker in the foreground until SIGTERM, SIGINT or SIGHUP, or the end of standard input.
    Returns the exit status.

    Raises:
        ConfigError: the properties are wrong, or the machine does not allow them.
        LogDirFailure: no log directory is usable.
    """
    config = KafkaConfig(properties)
    configure_logging(config.get_str("kafkapy.log.dir"))
    raise_open_files_limit()
    gc_tuning.freeze_survivors()

    async def serve() -> int:
        if until_eof:
            _stop_at_eof()
        memory_task = asyncio.ensure_future(_return_memory())
        try:
            return await run_until_stopped(Broker(config))
        finally:
            memory_task.cancel()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve())
