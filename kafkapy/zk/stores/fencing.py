"""Writes that only the active controller can make (`KafkaZkClient`, expected controller epoch).

Every write is a multi that begins with a check of `/controller_epoch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkapy.common.errors import KafkapyError
from kafkapy.zk.embedded.znode_tree import parent_of
from kafkapy.zk.stores import paths
from kafkapy.zk.zookeeper import (
    BadVersion,
    Check,
    Multi,
    NodeExists,
    NoNode,
    Op,
    OpResult,
    Response,
    ZooKeeper,
    ZooKeeperError,
)


class ControllerMoved(KafkapyError):
    """Another broker became the controller, so this one's state is stale."""


class Fence(NamedTuple):
    """A controller's fence: its epoch, and the data version of `/controller_epoch`.

    `brokers_zxid` is the zxid up to which the controller has handled broker registrations. It is
    written into partition states, so that the next controller finds the restarts that this one did
    not handle.
    """

    controller_epoch: int
    zk_version: int
    brokers_zxid: int = 0

    @property
    def check(self) -> Check:
        """The operation that fails if there is a newer controller."""
        return Check(paths.CONTROLLER_EPOCH, self.zk_version)


async def fenced_multi(zk: ZooKeeper, fence: Fence, ops: Sequence[Op]) -> list[OpResult]:
    """Apply all of `ops` or none, as the active controller. Returns their results.

    Raises:
        ControllerMoved: there is a newer controller.
        ZooKeeperError: the error of the first failing operation.
    """
    try:
        return (await zk.multi([fence.check, *ops]))[1:]
    except (BadVersion, NoNode) as error:
        _raise_if_moved(error)
        raise


async def fenced_multis(
    zk: ZooKeeper, fence: Fence, batches: Sequence[Sequence[Op]]
) -> list[list[OpResult] | ZooKeeperError]:
    """Apply each batch as a fenced transaction of its own, pipelined. Returns the results or error
    of each.

    Raises:
        ControllerMoved: there is a newer controller.
    """
    answers = await zk.pipeline([Multi([fence.check, *ops]) for ops in batches])
    return [_results(answer) for answer in answers]


def _results(answer: Response) -> list[OpResult] | ZooKeeperError:
    if isinstance(answer, ZooKeeperError):
        _raise_if_moved(answer)
        return answer
    assert isinstance(answer, list), answer
    return answer[1:]


def _raise_if_moved(error: ZooKeeperError) -> None:
    if error.path == paths.CONTROLLER_EPOCH:
        raise ControllerMoved(
            "Controller epoch zkVersion check fails: another broker became the controller"
        ) from error


async def create_recursive(zk: ZooKeeper, path: str, data: bytes = b"") -> None:
    """Create a node with its missing parents. Raises NodeExists."""
    try:
        await zk.create(path, data)
    except NoNode:
        await ensure_path(zk, parent_of(path))
        await zk.create(path, data)


async def ensure_path(zk: ZooKeeper, path: str) -> None:
    """Create an empty node at `path` unless one exists."""
    try:
        await create_recursive(zk, path)
    except NodeExists:
        return
