"""Broker registrations in ZooKeeper (`/brokers/ids`) and generated broker ids."""

from __future__ import annotations

import logging
import re
from typing import Final, NamedTuple

from kafkapy.common.cluster_state import BrokerInfo
from kafkapy.common.errors import KafkapyError
from kafkapy.zk.stores import paths
from kafkapy.zk.stores.fencing import ensure_path
from kafkapy.zk.stores.stray_children import StrayChildren
from kafkapy.zk.stores.znodes import ZnodeError, decode_broker, encode_broker
from kafkapy.zk.zookeeper import (
    Create,
    CreateMode,
    Delete,
    Get,
    NodeExists,
    NoNode,
    SetData,
    Watch,
    Znode,
    ZnodeStat,
    ZooKeeper,
    ZooKeeperError,
)

_log = logging.getLogger("kafka.zk.KafkaZkClient")

_ID: Final = re.compile("0|[1-9][0-9]{0,9}")


class BrokerIdTaken(KafkapyError):
    """Another process is registered under this broker id, or advertises the same address."""


class Registration(NamedTuple):
    """A live broker and its broker epoch (the czxid of its znode)."""

    broker: BrokerInfo
    broker_epoch: int


class BrokerStore:
    """The live brokers."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk
        self._stray = StrayChildren(paths.BROKER_IDS, "broker id", _is_id)

    async def register(
        self, broker: BrokerInfo, timestamp_ms: int, previous_session_id: int = 0
    ) -> int:
        """Register for the lifetime of this session. Returns the new broker epoch.

        `previous_session_id` is this process's own expired session, whose node may still exist.

        Raises:
            BrokerIdTaken: the id or an advertised address belongs to another broker.
        """
        await self._refuse_shared_address(broker)
        path = paths.broker(broker.broker_id)
        data = encode_broker(broker, timestamp_ms)
        while True:
            try:
                results = await self._zk.multi(
                    [Create(path, b"", CreateMode.EPHEMERAL), SetData(path, data, 0)]
                )
            except NodeExists:
                stat = await self._zk.exists(path)
                if stat is None:
                    continue
                if stat.ephemeral_owner == self._zk.session_id:
                    return stat.czxid
                if not previous_session_id or stat.ephemeral_owner != previous_session_id:
                    raise BrokerIdTaken(
                        f"broker id {broker.broker_id} is already registered at {path}: another"
                        " broker runs with this id, or its session has not expired yet"
                    ) from None
                await self._delete_registration(path, stat)
                continue
            written = results[1]
            assert isinstance(written, ZnodeStat), written
            return written.czxid

    async def owner(self, broker_id: int, watch: Watch | None = None) -> int:
        """The session id of a broker's registration; 0 without one. The watch fires at changes."""
        stat = await self._zk.exists(paths.broker(broker_id), watch)
        return 0 if stat is None else stat.ephemeral_owner

    async def update(self, broker: BrokerInfo, timestamp_ms: int) -> None:
        """Change a registered broker's advertised endpoints. Its broker epoch stays."""
        await self._zk.set(paths.broker(broker.broker_id), encode_broker(broker, timestamp_ms))

    async def ids(self, watch: Watch | None = None) -> list[int]:
        """The ids of all live brokers, ascending. A child that is no id is logged and left out."""
        names = await self._zk.children(paths.BROKER_IDS, watch)
        return sorted(map(int, self._stray.valid_names(names)))

    async def get(self, broker_id: int, watch: Watch | None = None) -> Registration | None:
        """One live broker."""
        try:
            return _registration(broker_id, await self._zk.get(paths.broker(broker_id), watch))
        except NoNode:
            return None

    async def zxid(self) -> int:
        """The zxid at which a broker last registered or left. Later reads include that change."""
        stat = await self._zk.exists(paths.BROKER_IDS)
        return 0 if stat is None else stat.children_zxid

    async def get_all(self, watch: Watch | None = None) -> dict[int, Registration]:
        """All live brokers by id, except those with an unreadable znode (logged).

        The watch fires when a broker registers or leaves.
        """
        ids = await self.ids(watch)
        answers = await self._zk.pipeline([Get(paths.broker(broker_id)) for broker_id in ids])
        found = {}
        for broker_id, answer in zip(ids, answers, strict=True):
            if isinstance(answer, Znode):
                try:
                    found[broker_id] = _registration(broker_id, answer)
                except ZnodeError as error:
                    _log.error("Broker %d is not admitted: %s", broker_id, error)
            elif not isinstance(answer, NoNode) and isinstance(answer, ZooKeeperError):
                raise answer
        return found

    async def generate_id(self, reserved_max: int) -> int:
        """A unique broker id above `reserved_max` (`reserved.broker.max.id`)."""
        await ensure_path(self._zk, paths.BROKER_SEQUENCE)
        stat = await self._zk.set(paths.BROKER_SEQUENCE, b"")
        return reserved_max + stat.version

    async def _delete_registration(self, path: str, stat: ZnodeStat) -> None:
        try:
            await self._zk.multi([Delete(path, stat.version)])
        except NoNode:
            return

    async def _refuse_shared_address(self, broker: BrokerInfo) -> None:
        own_endpoints = {(e.host, e.port): e for e in broker.endpoints if e.port > 0}
        for other_id, registration in (await self.get_all()).items():
            shared = [e for e in registration.broker.endpoints if (e.host, e.port) in own_endpoints]
            if other_id != broker.broker_id and shared:
                raise BrokerIdTaken(
                    f"advertised address {shared[0].host}:{shared[0].port} of broker"
                    f" {broker.broker_id} is already that of broker {other_id}"
                )


def _is_id(name: str) -> bool:
    return _ID.fullmatch(name) is not None and int(name) < 2**31


def _registration(broker_id: int, node: Znode) -> Registration:
    return Registration(decode_broker(broker_id, node.data), node.stat.czxid)
