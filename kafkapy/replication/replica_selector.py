"""Selects the replica that a consumer should read from (KIP-392): the leader, or one in its rack.

The names are those of Kafka's classes, for `replica.selector.class`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SELECTORS: Final = (LEADER_SELECTOR, RACK_AWARE_SELECTOR)


class ReplicaView(NamedTuple):
    """A replica that has the offset, on a broker with the consumer's listener."""

    broker_id: int
    rack: str | None
    log_end_offset: int
    last_caught_up_ms: int


def select_in_rack(rack: str, leader: ReplicaView, followers: Sequence[ReplicaView]) -> int:
    """The broker to read from (`RackAwareReplicaSelector`): the leader if it is in the consumer's
    rack, or if no replica is; else the most caught-up follower in that rack.
    """
    if not rack or leader.rack == rack:
        return leader.broker_id
    near = [follower for follower in followers if follower.rack == rack]
    if not near:
        return leader.broker_id
    return max(near, key=lambda r: (r.log_end_offset, r.last_caught_up_ms, r.broker_id)).broker_id
