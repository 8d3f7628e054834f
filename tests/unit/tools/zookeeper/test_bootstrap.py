"""From registrations to a bootstrap server list."""

import pytest

from kafkapy.common.cluster_state import BrokerInfo, Endpoint
from kafkapy.common.errors import ApiError
from kafkapy.tools.zookeeper.bootstrap import bootstrap_list

BROKERS = [
    BrokerInfo(1, (Endpoint("IN", "a", 9092), Endpoint("OUT", "A", 9093, "SSL"))),
    BrokerInfo(2, (Endpoint("IN", "b", 9092),)),
]


def test_each_broker_by_the_endpoint_that_suits() -> None:
    assert bootstrap_list(BROKERS, "z:2181", "PLAINTEXT") == "a:9092,b:9092"
    assert bootstrap_list(BROKERS, "z:2181", "SSL") == "A:9093"


def test_a_cluster_that_is_not_there_is_named() -> None:
    with pytest.raises(ApiError, match="No broker is registered at z:2181/kafka"):
        bootstrap_list([], "z:2181/kafka", "PLAINTEXT")
    with pytest.raises(ApiError, match="No broker that listens for SASL_SSL is registered"):
        bootstrap_list(BROKERS, "z:2181", "SASL_SSL")
