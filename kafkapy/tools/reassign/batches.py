"""Runs a reassignment in batches of partitions: `--execute --batch-size`.

A batch is complete when the controller lists none of its partitions any more and their in-sync
replicas are the target replicas. After an interruption, the same command continues: it skips
completed partitions, and waits for partitions that move already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kafkapy.admin.reassignments import ReassignmentFailed, running_reassignments
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.reassign.reassignment import Execution, begin, final_replicas

POLL_S: Final = 0.2


class BatchProgress(NamedTuple):
    """The progress of a run. `waiting` has the partitions of the batch that are not complete."""

    done: int
    total: int
    waiting: Sequence[TopicPartition]


class BatchRun:
    """One run over the partitions of an execution.

    `stop` (which `on_progress` may call) ends the run after the present batch; `not_begun` has
    the partitions that were not begun.
    """

    def __init__(
        self,
        cluster: Cluster,
        execution: Execution,
        batch_size: int,
        *,
        stuck_timeout_ms: int,
        on_progress: Callable[[BatchProgress], None],
        pause: Callable[[float], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._execution = execution
        self._batch_size = batch_size
        self._stuck_limit_s = stuck_timeout_ms / 1000
        self._on_progress = on_progress
        self._pause = pause
        self._clock = clock
        self.stopping = False
        self._stuck_since: float | None = None
        self._waiting: list[TopicPartition] = []
        order = sorted(execution.targets)
        moving = [tp for tp in order if tp in execution.running]
        idle = [tp for tp in order if tp not in execution.running]
        misplaced = [tp for tp in idle if execution.current[tp] != execution.targets[tp]]
        self.not_begun = [*moving, *misplaced]
        # A partition may already move to other replicas (with `--additional`), or to the same ones
        # in another order: it is redirected.
        self._begun = {
            tp for tp in moving if final_replicas(execution.running[tp]) == execution.targets[tp]
        }
        self._total = len(order)

    @property
    def done(self) -> int:
        """Partitions that are on their target replicas."""
        return self._total - len(self.not_begun) - len(self._waiting)

    def stop(self) -> None:
        """Stop after the present batch."""
        self.stopping = True

    def begin_all(self) -> None:
        """Begin every batch without waiting, for a dry run."""
        while self.not_begun:
            self._begin_next_batch()
        self._waiting = []

    def run(self) -> None:
        """Move batch after batch. Can be called again after an interruption, to continue.

        Raises:
            ReassignmentFailed: a partition was refused, or waits for a broker that does not return.
            ApiError: the cluster does not respond any more.
        """
        while self._waiting or (self.not_begun and not self.stopping):
            if not self._waiting:
                self._begin_next_batch()
            self._on_progress(BatchProgress(self.done, self._total, self._waiting))
            self._wait()
        self._on_progress(BatchProgress(self.done, self._total, ()))

    def _begin_next_batch(self) -> None:
        batch, targets = self.not_begun[: self._batch_size], self._execution.targets
        new = {tp: targets[tp] for tp in batch if tp not in self._begun}
        if new:
            begin(self._cluster, new)
        self._waiting = batch
        self.not_begun = self.not_begun[self._batch_size :]
        self._stuck_since = None

    def _wait(self) -> None:
        """Poll until the batch is complete. Gives up if no partition can move for too long."""
        while self._waiting:
            try:
                obstacle = self._poll()
            except ApiError as error:
                # The controller may be moving to another broker.
                obstacle = error.message
            if not obstacle:
                self._stuck_since = None
            elif self._waiting and self._is_stuck_too_long():
                raise ReassignmentFailed(self._stuck_message(obstacle))
            self._on_progress(BatchProgress(self.done, self._total, self._waiting))
            if self._waiting:
                self._pause(POLL_S)

    def _poll(self) -> str:
        """Remove completed partitions from `_waiting`. Returns the reason if none of the remaining
        partitions can move, else "".
        """
        targets = self._execution.targets
        running = running_reassignments(self._cluster)
        names = sorted({tp.topic for tp in self._waiting})
        metadata = self._cluster.metadata(names, refresh=True)
        waiting: list[TopicPartition] = []
        obstacles: list[str] = []
        for tp in self._waiting:
            partition = metadata.topics[tp.topic].partitions.get(tp.partition)
            current = () if partition is None else partition.replicas
            in_sync = () if partition is None else partition.isr
            if tp not in running and current == targets[tp] and set(in_sync) == set(current):
                continue
            waiting.append(tp)
            offline = sorted(set(targets[tp]) - metadata.brokers.keys())
            if offline:
                obstacles.append(f"broker {offline[0]} is not alive")
            elif partition is not None and (
                lost := set(targets[tp]).intersection(partition.offline_replicas)
            ):
                obstacles.append(f"the replica of {tp} on broker {min(lost)} is offline")
            elif partition is not None and partition.leader < 0:
                obstacles.append(f"{tp} has no leader")
            elif tp not in running and current != targets[tp]:
                replicas = ",".join(map(str, current))
                obstacles.append(f"{tp} does not move any more and has the replicas {replicas}")
        self._waiting = waiting
        return obstacles[0] if obstacles and len(obstacles) == len(waiting) else ""

    def _is_stuck_too_long(self) -> bool:
        now = self._clock()
        if self._stuck_since is None:
            self._stuck_since = now
        return now - self._stuck_since > self._stuck_limit_s

    def _stuck_message(self, reason: str) -> str:
        names = ", ".join(map(str, self._waiting))
        return (
            f"Gave up waiting for {names}: {reason}. Moves that were begun continue when they"
            " can; the same command then continues, and --cancel cancels them."
        )
