"""Writes that only the acting controller can make (`KafkaZkClient`, expected controller epoch).

Every one is a multi that begins with a check of `/controller_epoch`.
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
    """Another broker became the controller: what this one knows is stale."""


class Fence(NamedTuple):
    """A controller's fence: its epoch, and the data version of `/controller_epoch`."""

    controller_epoch: int
    zk_version: int

    @property
    def check(self) -> Check:
        """The operation that fails once there is a newer controller."""
        return Check(paths.CONTROLLER_EPOCH, self.zk_version)


async def fenced(zk: ZooKeeper, fence: Fence, ops: Sequence[Op]) -> list[OpResult]:
    """Do all of `ops` or none, as the acting controller; the results of `ops`.

    Raises:
        ControllerMoved: the fence does not hold.
        ZooKeeperError: the error of the first failing operation.
    """
    try:
        return (await zk.multi([fence.check, *ops]))[1:]
    except (BadVersion, NoNode) as error:
        _raise_if_moved(error)
        raise


async def fenced_each(
    zk: ZooKeeper, fence: Fence, batches: Sequence[Sequence[Op]]
) -> list[list[OpResult] | ZooKeeperError]:
    """Do each batch as its own fenced transaction, pipelined; results or error of each.

    Raises:
        ControllerMoved: the fence does not hold for one of them.
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
    """Create a node and the parents it lacks. Raises NodeExists."""
    try:
        await zk.create(path, data)
    except NoNode:
        await ensure(zk, parent_of(path))
        await zk.create(path, data)


async def ensure(zk: ZooKeeper, path: str) -> None:
    """Create an empty node at `path` unless one exists."""
    try:
        await create_recursive(zk, path)
    except NodeExists:
        return
