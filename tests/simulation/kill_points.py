"""Kills at named steps of a broker, which are counted.

The process ends just before it changes a path, just after it has written certain bytes, or just
after it has sent or received a request. Its actions while it unwinds have no effect, as after
kill -9.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.coordinator.transactions.state import PREPARE_COMMIT
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.records import iter_records
from tests.simulation.process import Killed

if TYPE_CHECKING:
    from kafkapy.storage.filesystem import Buffer
    from tests.simulation.node import Node
    from tests.simulation.plan import Plan

_STATUS_AT: Final = 16
"""The position in a transaction's record, after version, producer id, epoch and timeout."""


def _decides_commit(data: bytes) -> bool:
    return any(
        record.value is not None and record.value[_STATUS_AT] == PREPARE_COMMIT
        for record in iter_records(data)
    )


def _has_marker(data: bytes) -> bool:
    return any(header.is_control for _, header in iter_headers(data))


class KillPoint(NamedTuple):
    """A step: just before a change of a `path`, just after matching bytes were `written` there, or
    just after a request was `sent` or `received`. `applies_to(plan)` is true if a plan reaches it.
    `follows` is the fault that leads a broker to it, for a step that is too rare by itself."""

    path: str = ""
    written: Callable[[bytes], bool] | None = None
    sent: ApiKey | None = None
    received: ApiKey | None = None
    applies_to: Callable[[Plan], bool] = lambda plan: True
    follows: str = ""


def _has_transactions(plan: Plan) -> bool:
    return plan.transactional_ids > 0


def _compacts(plan: Plan) -> bool:
    return plan.compacts


def _deletes_segments(plan: Plan) -> bool:
    return plan.compacts or plan.retains


def _deletes_topics(plan: Plan) -> bool:
    return "delete topic" in plan.weights


def _moves(plan: Plan) -> bool:
    return "move to another directory" in plan.weights and "log.dirs" in plan.config


KILL_POINTS: Final[dict[str, KillPoint]] = {
    "a checkpoint is half written": KillPoint(r"offset-checkpoint\.tmp$"),
    "leader epochs are half written": KillPoint(r"leader-epoch-checkpoint\.tmp$"),
    "a decision is written": KillPoint(
        r"/__transaction_state-\d+/\d+\.log$", applies_to=_has_transactions
    ),
    "a group's record is written": KillPoint(r"/__consumer_offsets-\d+/\d+\.log$"),
    "a record is written": KillPoint(r"/orders-\d+/\d+\.log$"),
    "a segment begins": KillPoint(r"\.(index|timeindex)$"),
    "producers are saved": KillPoint(r"\.snapshot(\.tmp)?$"),
    "aborted transactions are noted": KillPoint(r"\.txnindex$", applies_to=_has_transactions),
    "a segment is compacted": KillPoint(r"\.cleaned$", applies_to=_compacts),
    "a compacted segment replaces others": KillPoint(r"\.swap$", applies_to=_compacts),
    "a segment is deleted": KillPoint(r"\.deleted$", applies_to=_deletes_segments),
    "a log is deleted": KillPoint(
        r"-delete(/|$)", applies_to=_deletes_topics, follows="delete topic"
    ),
    "a log is copied to another directory": KillPoint(
        r"-future(/|$)", applies_to=_moves, follows="move to another directory"
    ),
    "a new log gets its topic id": KillPoint(r"partition\.metadata(\.tmp)?$"),
    "PREPARE_COMMIT was written": KillPoint(
        r"/__transaction_state-\d+/\d+\.log$", _decides_commit, applies_to=_has_transactions
    ),
    "a marker was written": KillPoint(
        r"/(ledger|copies)-\d+/\d+\.log$", _has_marker, applies_to=_has_transactions
    ),
    "markers were sent": KillPoint(sent=ApiKey.WRITE_TXN_MARKERS, applies_to=_has_transactions),
    "AlterPartition was sent": KillPoint(sent=ApiKey.ALTER_PARTITION),
    "LeaderAndIsr was sent": KillPoint(sent=ApiKey.LEADER_AND_ISR),
    "LeaderAndIsr was received": KillPoint(received=ApiKey.LEADER_AND_ISR),
    "StopReplica was received": KillPoint(
        received=ApiKey.STOP_REPLICA, applies_to=_deletes_topics, follows="delete topic"
    ),
}


def kill_at(node: Node, point: str, passes: int, on_kill: Callable[[], None]) -> None:
    """Call `on_kill`, which ends the node's process, when the node passes this point for the
    `passes`th time (from 1)."""
    process, kill_point = node.process, KILL_POINTS[point]
    assert process is not None
    pattern = re.compile(kill_point.path)
    passes_left = passes

    def pass_point() -> None:
        nonlocal passes_left
        passes_left -= 1
        if passes_left == 0:
            on_kill()
            raise Killed

    def before(path: str) -> None:
        if node.process is not process:
            if asyncio._get_running_loop() is process:
                raise Killed
            disarm(node)
        elif kill_point.path and kill_point.written is None and pattern.search(path):
            pass_point()

    def after(path: str, buffers: Sequence[Buffer]) -> None:
        matches = kill_point.written
        if (
            matches
            and node.process is process
            and pattern.search(path)
            and matches(b"".join(buffers))
        ):
            pass_point()

    def on_request(wanted: ApiKey) -> Callable[[int], None]:
        return lambda api: pass_point() if api == wanted and passes_left else None

    disarm(node)
    node.faulty_disk.before_change = before
    node.faulty_disk.after_write = after
    if kill_point.sent is not None:
        process.on_sent = on_request(kill_point.sent)
    if kill_point.received is not None:
        process.on_received = on_request(kill_point.received)


def disarm(node: Node) -> None:
    """Remove all kill points from a node."""
    node.faulty_disk.before_change = lambda path: None
    node.faulty_disk.after_write = lambda path, buffers: None
    if node.process is not None:
        node.process.on_sent = node.process.on_received = None
