"""Executes, verifies and cancels reassignments (`ReassignPartitionsCommand`).

The target replicas come from `partition_files` and the planners of `admin`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kafkapy.admin.errors import java_text, topic_error
from kafkapy.admin.log_dirs import (
    Replica,
    ReplicaPlace,
    alter_replica_log_dirs,
    describe_log_dirs,
    places,
)
from kafkapy.admin.reassignments import (
    Reassignment,
    ReassignmentFailed,
    alter_reassignments,
    running_reassignments,
)
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.reassign.partition_files import ReassignmentFile, validate_reassignment
from kafkapy.tools.reassign.states import (
    LogDirMove,
    LogDirState,
    PartitionState,
    partition_states,
)

RETRY_S: Final = 0.1
SETTLE_S: Final = 2.0

# The errors of a broker that is down, or does not respond.
_UNREACHABLE: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_NOT_AVAILABLE,
)

ALREADY_RUNNING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to"
    " override this and create a new partition assignment in addition to the existing one. The"
    " --additional flag can also be used to change the throttle by resubmitting the current"
    " reassignment."
)


class Execution(NamedTuple):
    """The plan of `--execute`."""

    targets: dict[TopicPartition, tuple[int, ...]]
    current: dict[TopicPartition, tuple[int, ...]]
    log_dirs: Mapping[Replica, str]
    running: dict[TopicPartition, Reassignment]
    """All moves in progress in the cluster, from this file or not."""
    live: frozenset[int]
    cluster_id: str | None


class Verification(NamedTuple):
    """The result of `--verify`. `any_running` is about the whole cluster."""

    partitions: list[PartitionState]
    log_dirs: list[LogDirMove]
    any_running: bool

    @property
    def is_over(self) -> bool:
        """Whether nothing moves any more, so that throttles can be removed."""
        return not self.any_running and all(move.state.is_over for move in self.log_dirs)

    @property
    def is_complete(self) -> bool:
        """Whether every replica is at its target."""
        return all(state.is_complete for state in self.partitions) and all(
            move.state is LogDirState.COMPLETED for move in self.log_dirs
        )


def prepare(
    cluster: Cluster, file: ReassignmentFile, *, additional: bool, resume: bool = False
) -> Execution:
    """Check a reassignment against the cluster, without a change.

    With `resume`, running moves towards the file's targets are accepted.

    Raises:
        JsonInputError: the file is invalid.
        ReassignmentFailed: other moves run, and `additional` is not set.
        ApiError: an unknown broker, topic or partition.
    """
    validate_reassignment(file)
    running = running_reassignments(cluster)
    targets = file.targets
    others = [
        tp
        for tp, move in running.items()
        if not (resume and tp in targets and set(targets[tp]) == set(final_replicas(move)))
    ]
    if others and not additional:
        raise ReassignmentFailed(ALREADY_RUNNING)
    known = cluster.metadata([], refresh=True)
    live = frozenset(known.brokers)
    for replicas in targets.values():
        for broker_id in replicas:
            if broker_id not in live:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown broker id {broker_id}")
    current = current_replicas(cluster, targets, must_exist=True)
    # The replicas that a running move adds are no part of a rollback.
    for tp in current.keys() & running.keys():
        current[tp] = running[tp].before(current[tp])
    return Execution(targets, current, file.log_dirs, running, live, known.cluster_id)


def check_replication_factors(plan: Execution) -> None:
    """
    Raises:
        ReassignmentFailed: partitions would have another number of replicas (KIP-860). The check is
            here, since only brokers of Kafka 4.1 have it.
    """
    changed = {
        tp: ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(plan.current[tp])} to {len(replicas)}",
        )
        for tp, replicas in plan.targets.items()
        if len(replicas) != len(plan.current[tp])
    }
    _raise_refused(changed)


def final_replicas(move: Reassignment) -> tuple[int, ...]:
    """The replicas after a move."""
    return move.after(move.replicas)


def current_replicas(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, must_exist: bool = False
) -> dict[TopicPartition, tuple[int, ...]]:
    """The present replicas of partitions. Partitions that do not exist are left out.

    Raises:
        ApiError: the broker does not describe a topic; or a topic or partition does not exist, and
            `must_exist` is set.
    """
    partitions = list(partitions)
    names = sorted({tp.topic for tp in partitions})
    topics = cluster.metadata(names, refresh=True).topics if names else {}
    found = {}
    for tp in partitions:
        topic = topics[tp.topic]
        partition = topic.partitions.get(tp.partition)
        if partition is not None:
            found[tp] = partition.replicas
            continue
        exists = bool(topic.partitions)
        unknown = f"Unable to find partition: {tp}" if exists else f"Topic {tp.topic} not found."
        error = topic_error(topic.error, tp.topic, unknown)
        if must_exist or error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ApiError(error.code, java_text(error))
    return found


def begin(cluster: Cluster, targets: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Start the moves of partitions.

    Raises:
        ReassignmentFailed: some moves were refused, with the reasons. The others have started.
    """
    _raise_refused(alter_reassignments(cluster, targets))


def begin_log_dir_moves(
    cluster: Cluster, moves: Mapping[Replica, str], timeout_ms: int
) -> dict[Replica, ApiError]:
    """Start moves between directories. Repeats requests until the brokers have the replicas.

    Returns the replicas whose move did not start, with their errors: REPLICA_NOT_AVAILABLE for
    those that still did not exist after `timeout_ms`.
    """
    pending = dict(sorted(moves.items()))
    failed: dict[Replica, ApiError] = {}
    deadline = time.monotonic() + timeout_ms / 1000
    pause = threading.Event()
    while True:
        for broker_id, group in _by_broker(pending).items():
            wanted = {replica.topic_partition: pending[replica] for replica in group}
            try:
                refused = alter_replica_log_dirs(cluster, broker_id, wanted)
            except ApiError as broker_error:
                refused = dict.fromkeys(wanted, broker_error)
            for replica in group:
                error = refused.get(replica.topic_partition)
                if error is None:
                    failed.pop(replica, None)
                else:
                    failed[replica] = error
                if error is None or error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
                    del pending[replica]
        if not pending or time.monotonic() >= deadline:
            return failed
        pause.wait(RETRY_S)


def log_dir_errors(failed: Mapping[Replica, ApiError]) -> str:
    """A line for each replica whose move between directories did not start."""
    return "\n".join(
        f"Error: Failed to alter dir for {replica}: {java_text(error)}"
        for replica, error in sorted(failed.items())
    )


def verify(cluster: Cluster, file: ReassignmentFile) -> Verification:
    """The progress of a file's moves.

    A broker learns of the end of a move after the controller, which no longer lists it. So replicas
    that are neither moving nor at their target are looked at again, for up to `SETTLE_S`.

    Raises:
        ApiError: a request failed.
    """
    targets = file.targets
    deadline = time.monotonic() + SETTLE_S
    pause = threading.Event()
    while True:
        running = running_reassignments(cluster)
        states = partition_states(targets, current_replicas(cluster, targets), running)
        is_settled = all(each.is_moving or each.is_complete for each in states)
        if is_settled or time.monotonic() >= deadline:
            break
        pause.wait(RETRY_S)
    return Verification(states, log_dir_moves(cluster, file.log_dirs), bool(running))


def log_dir_moves(cluster: Cluster, wanted: Mapping[Replica, str]) -> list[LogDirMove]:
    """The directories of replicas, sorted by broker, topic and partition. They are unknown for a
    broker that is down or does not respond.

    Raises:
        ApiError: a broker refused.
    """
    live = cluster.metadata([], refresh=True).brokers if wanted else {}
    moves = []
    for broker_id, group in sorted(_by_broker(wanted).items()):
        found: Mapping[TopicPartition, ReplicaPlace] | None = None
        if broker_id in live:
            try:
                partitions = [replica.topic_partition for replica in group]
                found = places(describe_log_dirs(cluster, broker_id, partitions))
            except ApiError as error:
                if error.code not in _UNREACHABLE:
                    raise
        for replica in sorted(group):
            place = None
            if found is not None:
                place = found.get(replica.topic_partition, ReplicaPlace())
            moves.append(LogDirMove(replica, wanted[replica], place))
    return moves


def cancel_moves(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> tuple[list[TopicPartition], dict[TopicPartition, ApiError]]:
    """Stop the moves of partitions. Returns the partitions whose move was cancelled, and the
    refusals. A move that ends meanwhile is neither.
    """
    running = running_reassignments(cluster, sorted(partitions))
    active = sorted(tp for tp, move in running.items() if move.adding or move.removing)
    errors = alter_reassignments(cluster, dict.fromkeys(active)) if active else {}
    refused = {
        tp: error
        for tp, error in errors.items()
        if error.code is not ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    }
    return [tp for tp in active if tp not in errors], refused


def cancel_errors(refused: Mapping[TopicPartition, ApiError]) -> str:
    """The error of Kafka's tool for moves that could not be cancelled."""
    plural = "" if len(refused) == 1 else "s"
    return f"Error cancelling partition reassignment{plural} for:\n" + _error_lines(refused)


class CancelledLogDirMoves(NamedTuple):
    """The replicas that were moving between directories, with their current directories, and those
    whose move was not cancelled: the broker refused, or is down or does not respond."""

    cancelled: dict[Replica, str]
    refused: dict[Replica, ApiError]
    unknown: list[Replica]


def cancel_log_dir_moves(cluster: Cluster, wanted: Mapping[Replica, str]) -> CancelledLogDirMoves:
    """Stop the moves of replicas between directories.

    Raises:
        ApiError: a broker did not return the directories of its replicas.
    """
    moves = log_dir_moves(cluster, wanted)
    current_dirs = {
        move.replica: move.place.current
        for move in moves
        if move.place is not None and move.place.future is not None and move.place.current
    }
    refused = begin_log_dir_moves(cluster, current_dirs, 0)
    cancelled = {r: path for r, path in sorted(current_dirs.items()) if r not in refused}
    unknown = [move.replica for move in moves if move.place is None]
    return CancelledLogDirMoves(cancelled, refused, unknown)


def _by_broker(replicas: Iterable[Replica]) -> dict[int, list[Replica]]:
    groups: dict[int, list[Replica]] = {}
    for replica in replicas:
        groups.setdefault(replica.broker_id, []).append(replica)
    return groups


def _raise_refused(refused: Mapping[TopicPartition, ApiError]) -> None:
    if refused:
        raise ReassignmentFailed("Error reassigning partition(s):\n" + _error_lines(refused))


def _error_lines(refused: Mapping[TopicPartition, ApiError]) -> str:
    return "\n".join(f"{tp}: {error.message}" for tp, error in sorted(refused.items()))
