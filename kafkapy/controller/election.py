"""Leader election: Kafka's four strategies (`kafka.controller.Election`), pure.

Each takes the assigned replicas in their order, the current state and the online brokers. It
returns the new leader, the new ISR and the brokers to notify, or None if no replica may lead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from kafkapy.common.cluster_state import RECOVERING, LeaderAndIsr

IsOnline = Callable[[int], bool]


class Election(NamedTuple):
    """The state after an election (with the next leader epoch), and the brokers to notify."""

    state: LeaderAndIsr
    recipients: tuple[int, ...]


def _election(
    state: LeaderAndIsr,
    leader: int,
    isr: Sequence[int],
    recipients: Sequence[int],
) -> Election:
    new = replace(state, leader=leader, isr=tuple(isr), leader_epoch=state.leader_epoch + 1)
    return Election(new, tuple(recipients))


def elect_offline(
    assigned: Sequence[int], state: LeaderAndIsr, is_online: IsOnline, unclean: bool
) -> Election | None:
    """The first assigned replica that is online and in sync. `unclean` allows an out-of-sync
    replica if no member of the ISR is online. Records that it lacks are lost, so it starts
    RECOVERING.
    """
    online = [replica for replica in assigned if is_online(replica)]
    leader = next((replica for replica in online if replica in state.isr), None)
    if leader is not None:
        isr = [replica for replica in state.isr if is_online(replica)]
        return _election(state, leader, isr, online)
    if not unclean or not online or any(is_online(replica) for replica in state.isr):
        return None
    recovering = replace(state, leader_recovery_state=RECOVERING)
    return _election(recovering, online[0], online[:1], online)


def elect_reassign(
    targets: Sequence[int], state: LeaderAndIsr, is_online: IsOnline
) -> Election | None:
    """The first target replica that is online and in sync. The others leave the ISR: the leader no
    longer waits for their copies.
    """
    online = [replica for replica in targets if is_online(replica)]
    isr = [replica for replica in state.isr if replica in targets]
    leader = next((replica for replica in online if replica in isr), None)
    return None if leader is None else _election(state, leader, isr, online)


def elect_preferred(
    assigned: Sequence[int], state: LeaderAndIsr, is_online: IsOnline
) -> Election | None:
    """The first assigned replica, if it is online and in sync."""
    preferred = assigned[0]
    if not is_online(preferred) or preferred not in state.isr:
        return None
    return _election(state, preferred, state.isr, assigned)


def elect_controlled_shutdown(
    assigned: Sequence[int],
    state: LeaderAndIsr,
    is_online_or_stopping: IsOnline,
    shutting_down: set[int],
) -> Election | None:
    """The first assigned replica in sync that is not itself shutting down."""
    online = [replica for replica in assigned if is_online_or_stopping(replica)]
    isr = [replica for replica in state.isr if replica not in shutting_down]
    leader = next((replica for replica in online if replica in isr), None)
    return None if leader is None else _election(state, leader, isr, online)
