"""The port has the verbs that senders implement, and no more."""

from __future__ import annotations

from kafkapy.controller.ports import BrokerSender
from kafkapy.server.cluster.broker_channels import BrokerChannels
from tests.harness.cores.controllers import Broker


def test_the_senders_have_every_verb() -> None:
    verbs = {name for name in vars(BrokerSender) if not name.startswith("_")}
    assert verbs == {
        "add_broker",
        "remove_broker",
        "send_leader_and_isr",
        "send_update_metadata",
        "send_stop_replica",
    }
    for sender in (Broker, BrokerChannels):
        assert verbs <= set(dir(sender))
