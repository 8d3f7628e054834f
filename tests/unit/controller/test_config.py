"""The controller's configs have Kafka's defaults."""

from __future__ import annotations

from kafkapy.controller.config import ControllerConfig
from kafkapy.server.config.kafka_config import BROKER_CONFIGS


def test_defaults_are_those_of_the_broker_table() -> None:
    config = ControllerConfig(1)
    defaults = {name: key.default for name, key in BROKER_CONFIGS.keys.items()}
    assert config.delete_topic_enable == defaults["delete.topic.enable"]
    assert config.unclean_leader_election_enable == defaults["unclean.leader.election.enable"]
    percentage = defaults["leader.imbalance.per.broker.percentage"]
    assert config.leader_imbalance_per_broker_percentage == percentage
