"""Kills in the middle of a step that changes the disk, at named points that are counted.

The process ends just before a change whose path matches. Nothing that it does while it unwinds has
an effect, as after kill -9.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.process import Killed

if TYPE_CHECKING:
    from tests.simulation.node import Node

KILL_POINTS: Final = {
    "a checkpoint is half written": r"offset-checkpoint\.tmp$",
    "leader epochs are half written": r"leader-epoch-checkpoint\.tmp$",
    "a decision is written": r"/__transaction_state-\d+/\d+\.log$",
    "a group's record is written": r"/__consumer_offsets-\d+/\d+\.log$",
    "a record is written": r"/orders-\d+/\d+\.log$",
    "a segment begins": r"\.(index|timeindex)$",
    "producers are saved": r"\.snapshot(\.tmp)?$",
    "aborted transactions are noted": r"\.txnindex$",
    "a segment is compacted": r"\.cleaned$",
    "a compacted segment replaces others": r"\.swap$",
    "a segment is deleted": r"\.deleted$",
    "a log is deleted": r"-delete(/|$)",
    "a log is copied to another directory": r"-future(/|$)",
    "a new log gets its topic id": r"partition\.metadata(\.tmp)?$",
}
"""The path that is changed, by point."""


def kill_at(node: Node, point: str, passes: int, on_kill: Callable[[], None]) -> None:
    """Call `on_kill`, which ends the node's process, just before the change number `passes` (from
    1) that matches a point."""
    disk, process, pattern = node.faulty_disk, node.process, re.compile(KILL_POINTS[point])
    left = passes

    def before(path: str) -> None:
        nonlocal left
        if node.process is not process:
            if asyncio._get_running_loop() is process:
                raise Killed
            disarm(node)
        elif pattern.search(path):
            left -= 1
            if left == 0:
                on_kill()
                raise Killed

    disk.before_change = before


def disarm(node: Node) -> None:
    """No point ends the node's process any more."""
    node.faulty_disk.before_change = lambda path: None
