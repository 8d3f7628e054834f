"""Runs one function in a ZooKeeper session, for commands with `--zookeeper`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from kafkapy.common.java_environment import with_login_config
from kafkapy.zk.kazoo.adapter import KazooZooKeeper
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from kafkapy.zk.stores.store import ZkStore

_T = TypeVar("_T")


def with_zookeeper(
    connect: str,
    work: Callable[[ZkStore], Awaitable[_T]],
    properties: Mapping[str, str] | None = None,
) -> _T:
    """Run `work` on the znodes of `host:port,.../chroot`; `properties` are `zookeeper.*` keys.

    Raises:
        ZooKeeperUnavailable: no server answers within `zookeeper.connection.timeout.ms`.
        ConfigError: `connect` or a property is malformed.
        ZooKeeperError: an operation of `work` failed.
    """
    # Suppress the libraries' logs: the command reports an error once, at its end.
    for name in ("kazoo", "org.apache.zookeeper"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    config = ZooKeeperClientConfig.from_properties(
        {**with_login_config(properties or {}), "zookeeper.connect": connect}
    )

    async def session() -> _T:
        client = KazooZooKeeper(config)
        await client.connect()
        try:
            return await work(ZkStore(client))
        finally:
            await client.close()

    return asyncio.run(session())
