"""Brokers that a cluster is to forget."""

from __future__ import annotations

import pytest

from kafkapy.admin.registrations import Registration, registrations, unregister_broker
from kafkapy.client.cluster import Cluster
from kafkapy.client.metadata import Broker
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kafkapy.protocol.messages.unregister_broker import UnregisterBrokerResponse
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

KEY = ApiKey.UNREGISTER_BROKER


def scripted(answer: UnregisterBrokerResponse) -> ScriptedCluster:
    return ScriptedCluster({ApiKey.METADATA: metadata(brokers={1: 9001}), KEY: answer})


def unregister(cluster: ScriptedCluster) -> bool:
    with Cluster("b:1", {}, connector=cluster.connect) as client:
        return unregister_broker(client, 7)


def test_the_broker_is_named() -> None:
    cluster = scripted(UnregisterBrokerResponse())
    assert unregister(cluster)
    assert [request.broker_id for request in cluster.requests_of(KEY)] == [7]


def test_a_cluster_without_the_api() -> None:
    cluster = scripted(UnregisterBrokerResponse())
    del cluster.versions[KEY]
    assert not unregister(cluster)
    assert not unregister(
        scripted(UnregisterBrokerResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    )


def test_a_refusal() -> None:
    code = ErrorCode.BROKER_ID_NOT_REGISTERED
    for said, shown in {
        None: "The given broker ID was not registered.",
        "Not 7.": "Not 7.",
    }.items():
        refusal = UnregisterBrokerResponse(error_code=code, error_message=said)
        with pytest.raises(ApiError) as failed:
            unregister(scripted(refusal))
        assert (failed.value.code, str(failed.value)) == (code, shown)


def described() -> ScriptedCluster:
    brokers = [
        DescribeClusterBroker(broker_id=2, host="b", port=9002, is_fenced=True),
        DescribeClusterBroker(broker_id=1, host="b", port=9001, rack="r"),
    ]
    answer = DescribeClusterResponse(brokers=brokers)
    return ScriptedCluster({ApiKey.METADATA: metadata(), ApiKey.DESCRIBE_CLUSTER: answer})


def test_brokers_that_are_down_are_registered() -> None:
    cluster = described()
    with Cluster("b:1", {}, connector=cluster.connect) as client:
        assert registrations(client) == [
            Registration(Broker(1, "b", 9001, "r"), is_fenced=False),
            Registration(Broker(2, "b", 9002), is_fenced=True),
        ]
    (request,) = cluster.requests_of(ApiKey.DESCRIBE_CLUSTER)
    assert request.include_fenced_brokers


def test_a_cluster_that_is_too_old_to_tell() -> None:
    """It would leave out the brokers that are down, as if they were not registered."""
    cluster = described()
    cluster.versions[ApiKey.DESCRIBE_CLUSTER] = (0, 1)
    with (
        Cluster("b:1", {}, connector=cluster.connect) as client,
        pytest.raises(ApiError, match="DESCRIBE_CLUSTER"),
    ):
        registrations(client)
