"""The broker configs that the controller uses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ControllerConfig:
    """Configs under Kafka's names. `unclean_leader_election_enable` may change at run time. A
    change to true must be followed by the event `UncleanElectionEnabled`.
    """

    broker_id: int
    delete_topic_enable: bool = True
    unclean_leader_election_enable: bool = False
    leader_imbalance_per_broker_percentage: int = 10
