"""The replicas and brokers of a reassignment's throttle (`ReassignPartitionsCommand`).

Two lists of each topic, `partition:broker,...`, name the throttled replicas: leaders that others
copy from, and followers that copy. The brokers' configs set their rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kafkapy.admin.reassignments import Reassignment
from kafkapy.common.topic_partition import TopicPartition

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
BROKER_RATES: Final = (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
TOPIC_REPLICAS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)


class PartitionMove(NamedTuple):
    """The brokers with a partition's data, and those that copy it."""

    sources: frozenset[int]
    destinations: frozenset[int]


class ThrottlePlan(NamedTuple):
    """The lists of each topic, by config name, and the brokers that need the rates."""

    topics: dict[str, dict[str, str]]
    brokers: tuple[int, ...]


def planned_moves(
    current: Mapping[TopicPartition, Sequence[int]],
    targets: Mapping[TopicPartition, Sequence[int]],
    running: Mapping[TopicPartition, Reassignment],
) -> dict[TopicPartition, PartitionMove]:
    """The moves of `targets`, and those in progress (`calculateProposedMoveMap`).

    The added replicas of a moving partition are not sources yet.
    """
    moves = {
        tp: PartitionMove(frozenset(move.replicas) - frozenset(move.adding), frozenset(move.adding))
        for tp, move in running.items()
    }
    for tp, target in targets.items():
        running_move = moves.get(tp)
        sources = running_move.sources if running_move else frozenset(current[tp])
        moves[tp] = PartitionMove(sources, frozenset(target) - sources)
    return moves


def throttle_plan(moves: Mapping[TopicPartition, PartitionMove]) -> ThrottlePlan:
    """The brokers and replicas to throttle during `moves`."""
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for (topic, index), move in moves.items():
        leaders.setdefault(topic, []).extend(f"{index}:{b}" for b in move.sources)
        followers.setdefault(topic, []).extend(f"{index}:{b}" for b in move.destinations)
    brokers = {b for move in moves.values() for b in (*move.sources, *move.destinations)}
    return ThrottlePlan(
        {
            topic: {
                LEADER_REPLICAS: ",".join(sorted(leaders[topic])),
                FOLLOWER_REPLICAS: ",".join(sorted(followers[topic])),
            }
            for topic in sorted(leaders)
        },
        tuple(sorted(brokers)),
    )
