"""The versions that are served are those of Apache Kafka 3.9.1 in ZooKeeper mode, the later ones of
Kafka 4 in `LATER`, and where every broker has them the APIs of consumer groups.

`kafka_3_9_1_api_versions.txt` is its ApiVersions response: a line is "key name lowest highest".
What is not served, and why, is in `NOT_SERVED` and nowhere else.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.handlers import SERVED, api_versions
from kafkapy.server.cluster.cluster_features import GROUP_VERSION, ClusterFeatures
from tests.harness.cores.request_contexts import request_context

_LINES = Path(__file__).with_name("kafka_3_9_1_api_versions.txt").read_text().splitlines()
RECORDED = {
    int(key): (name, int(low), int(high)) for key, name, low, high in map(str.split, _LINES)
}
NOT_SERVED = {
    ApiKey.ENVELOPE: "brokers forward to KRaft controllers only: 3.9.1 closes the connection",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "3.9.1 answers UNSUPPORTED_VERSION",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "3.9.1 answers UNSUPPORTED_VERSION",
}
LATER = {
    ApiKey.PRODUCE: 13,
    ApiKey.FETCH: 18,
    ApiKey.LIST_OFFSETS: 11,
    ApiKey.METADATA: 13,
    ApiKey.OFFSET_COMMIT: 10,
    ApiKey.OFFSET_FETCH: 10,
    ApiKey.API_VERSIONS: 5,
    ApiKey.DESCRIBE_CLUSTER: 2,
    ApiKey.UPDATE_FEATURES: 2,
    ApiKey.END_TXN: 5,
    ApiKey.TXN_OFFSET_COMMIT: 6,
}
"""The last versions of APIs that Kafka 4 has extended."""
# Of its KRaft mode.
OF_KAFKA_4 = {
    71: ("GET_TELEMETRY_SUBSCRIPTIONS", 0, 0),
    72: ("PUSH_TELEMETRY", 0, 0),
    74: ("LIST_CONFIG_RESOURCES", 0, 1),
    75: ("DESCRIBE_TOPIC_PARTITIONS", 0, 0),
}
WITHOUT: Any = SimpleNamespace(
    has_consumer_groups=False, has_share_groups=False, supported=(), levels={}, epoch=7
)
WITH: Any = SimpleNamespace(
    has_consumer_groups=True,
    has_share_groups=False,
    supported=(GROUP_VERSION,),
    levels={"group.version": 1},
    epoch=8,
)


def answered(features: ClusterFeatures, version: int = 2, **meant: Any) -> ApiVersionsResponse:
    context = request_context(18, version)
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1", **meant)
    cluster = ClusterView("ours", 1, MetadataCache())
    return api_versions.handle(SERVED, cluster, features, context, request)


def served(features: ClusterFeatures) -> dict[int, tuple[str, int, int]]:
    return {
        row.api_key: (ApiKey(row.api_key).name, row.min_version, row.max_version)
        for row in answered(features).api_keys
    }


def test_every_version_of_apache_kafka_is_served_and_no_other() -> None:
    expected = {
        key: (name, low, LATER.get(ApiKey(key), high))
        for key, (name, low, high) in RECORDED.items()
        if key not in NOT_SERVED
    }
    assert served(WITHOUT) == {**expected, **OF_KAFKA_4}


def test_consumer_groups_are_served_where_every_broker_has_them() -> None:
    more = set(served(WITH).items()) - set(served(WITHOUT).items())
    assert more == {
        (68, ("CONSUMER_GROUP_HEARTBEAT", 0, 1)),
        (69, ("CONSUMER_GROUP_DESCRIBE", 0, 1)),
    }


def test_share_groups_are_served_where_every_broker_has_them() -> None:
    shares: Any = SimpleNamespace(**{**vars(WITHOUT), "has_share_groups": True})
    more = served(shares).keys() - served(WITHOUT).keys()
    assert more == {*range(76, 80), *range(83, 88), *range(90, 93)}


def test_features_are_those_of_the_broker_and_of_the_cluster() -> None:
    answer = answered(WITH, 4)
    (supported,) = answer.supported_features
    assert (supported.name, supported.min_version, supported.max_version) == ("group.version", 1, 1)
    (on,) = answer.finalized_features
    assert (on.name, on.min_version_level, on.max_version_level) == ("group.version", 1, 1)
    assert answer.finalized_features_epoch == 8
    without = answered(WITHOUT, 4)
    assert (without.finalized_features, without.finalized_features_epoch) == ([], 7)


@pytest.mark.parametrize(
    ("meant", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"cluster_id": "ours", "node_id": 1}, ErrorCode.NONE),
        ({"cluster_id": "ours", "node_id": 2}, ErrorCode.REBOOTSTRAP_REQUIRED),
        ({"cluster_id": "other", "node_id": 1}, ErrorCode.REBOOTSTRAP_REQUIRED),
        ({"cluster_id": "ours"}, ErrorCode.REBOOTSTRAP_REQUIRED),
        ({"node_id": 2}, ErrorCode.NONE),
    ],
)
def test_a_client_that_means_another_broker_is_told(meant: dict[str, Any], code: int) -> None:
    answer = answered(WITH, 5, **meant)
    assert (answer.error_code, bool(answer.api_keys)) == (code, code == ErrorCode.NONE)


def test_each_exception_is_one_that_apache_kafka_lists() -> None:
    assert NOT_SERVED.keys() <= RECORDED.keys()
