"""Controller election: `/controller` and `/controller_epoch`."""

from __future__ import annotations

from kafkapy.zk.stores import paths
from kafkapy.zk.stores.fencing import ControllerMoved, Fence, fenced_multi
from kafkapy.zk.stores.znodes import decode_controller, decode_controller_epoch, encode_controller
from kafkapy.zk.zookeeper import (
    BadVersion,
    Create,
    CreateMode,
    Delete,
    NodeExists,
    NoNode,
    SetData,
    Watch,
    Znode,
    ZnodeStat,
    ZooKeeper,
)


class ElectionStore:
    """The nodes of the controller election."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk

    async def controller_id(self, watch: Watch | None = None) -> int | None:
        """The controller's broker id. The watch also fires when a controller is elected."""
        if watch is not None:
            await self._zk.exists(paths.CONTROLLER, watch)
        try:
            return decode_controller((await self._zk.get(paths.CONTROLLER)).data)
        except NoNode:
            return None

    async def elect(self, broker_id: int, timestamp_ms: int) -> Fence:
        """Become the controller.

        Raises:
            ControllerMoved: another broker won.
        """
        epoch_node = await self._epoch()
        epoch = decode_controller_epoch(epoch_node.data) + 1
        version = epoch_node.stat.version
        node = encode_controller(broker_id, timestamp_ms)
        try:
            results = await self._zk.multi(
                [
                    Create(paths.CONTROLLER, node, CreateMode.EPHEMERAL),
                    SetData(paths.CONTROLLER_EPOCH, str(epoch).encode(), version),
                ]
            )
        except (NodeExists, BadVersion):
            return await self._fence_if_elected(broker_id, epoch)
        stat = results[1]
        assert isinstance(stat, ZnodeStat), stat
        return Fence(epoch, stat.version)

    async def delete_controller(self, fence: Fence) -> None:
        """Delete `/controller`, so that a controller is elected again (`triggerControllerMove`).

        Raises:
            ControllerMoved: another broker is the controller already.
        """
        try:
            await fenced_multi(self._zk, fence, [Delete(paths.CONTROLLER)])
        except NoNode:
            return

    async def _fence_if_elected(self, broker_id: int, epoch: int) -> Fence:
        """The fence of an election whose answer was lost: this broker is the controller, with the
        epoch that it tried to write. Raises ControllerMoved: another broker won.
        """
        if await self.controller_id() == broker_id:
            node = await self._epoch()
            stat = await self._zk.exists(paths.CONTROLLER)
            is_own = stat is not None and stat.ephemeral_owner == self._zk.session_id
            if is_own and decode_controller_epoch(node.data) == epoch:
                return Fence(epoch, node.stat.version)
        raise ControllerMoved("another broker won the controller election")

    async def _epoch(self) -> Znode:
        while True:
            try:
                return await self._zk.get(paths.CONTROLLER_EPOCH)
            except NoNode:
                try:
                    await self._zk.create(paths.CONTROLLER_EPOCH, b"0")
                except NodeExists:
                    continue
