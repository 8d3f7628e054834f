"""Configs: which broker answers for what, and what counts as dynamic."""

from __future__ import annotations

import pytest

from kafkapy.admin.batches import PER_REQUEST
from kafkapy.admin.configs import (
    ConfigChanges,
    ConfigEntry,
    Resource,
    alter_many_configs,
    client_metrics_names,
    describe_configs,
    dynamic_only,
    group_names,
    incremental_alter_configs,
)
from kafkapy.client.cluster import Cluster
from kafkapy.common.config_def import ConfigSource, ResourceType
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkapy.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kafkapy.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesResponse,
)
from tests.harness.scripted.scripted_topics import BROKERS, describing_cluster

TOPIC = Resource(ResourceType.TOPIC, "t")
BROKER_2 = Resource(ResourceType.BROKER, "2")
DEFAULT_BROKER = Resource(ResourceType.BROKER, "")
LOGGER_1 = Resource(ResourceType.BROKER_LOGGER, "1")


def test_a_broker_answers_for_itself_and_anyone_for_the_rest() -> None:
    scripted = describing_cluster()
    cluster = Cluster("b:1", connector=scripted.connect)
    resources = [TOPIC, BROKER_2, DEFAULT_BROKER, LOGGER_1]
    assert set(describe_configs(cluster, resources)) == set(resources)
    ports = [p for p, r, _ in scripted.requests if r.API_KEY == ApiKey.DESCRIBE_CONFIGS]
    assert ports == [1, BROKERS[2], BROKERS[1]]


def test_entries() -> None:
    cluster = Cluster("b:1", connector=describing_cluster().connect)
    entries = {e.name: e for e in describe_configs(cluster, [TOPIC])[TOPIC]}
    assert entries["segment.bytes"].is_default
    assert not entries["retention.ms"].is_default
    assert entries["retention.ms"].synonyms[0].value == "5"


def test_brokers_before_kafka_1_1_tell_overrides_from_defaults() -> None:
    """Their version of DescribeConfigs has no sources: every config looked like an override."""

    def answer(request: DescribeConfigsRequest, port: int) -> DescribeConfigsResponse:
        entries = [
            DescribeConfigsResourceResult(name="retention.ms", value="5"),
            DescribeConfigsResourceResult(name="segment.bytes", value="9", is_default=True),
        ]
        results = [
            DescribeConfigsResult(
                resource_type=each.resource_type, resource_name=each.resource_name, configs=entries
            )
            for each in request.resources
        ]
        return DescribeConfigsResponse(results=results)

    scripted = describing_cluster(DESCRIBE_CONFIGS=answer)
    scripted.versions = {**scripted.versions, ApiKey.DESCRIBE_CONFIGS: (0, 0)}
    cluster = Cluster("b:1", connector=scripted.connect)
    found = describe_configs(cluster, [TOPIC, BROKER_2])
    assert [e.name for e in found[TOPIC] if not e.is_default] == ["retention.ms"]
    assert [e.name for e in dynamic_only(found[TOPIC], TOPIC)] == ["retention.ms"]
    assert [e.source for e in found[BROKER_2]] == [
        ConfigSource.STATIC_BROKER_CONFIG,
        ConfigSource.DEFAULT_CONFIG,
    ]


def entry(source: ConfigSource) -> ConfigEntry:
    return ConfigEntry(source.name, "", source, False, False, ())


@pytest.mark.parametrize(
    ("resource", "source"),
    [
        (TOPIC, ConfigSource.DYNAMIC_TOPIC_CONFIG),
        (BROKER_2, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (DEFAULT_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
    ],
)
def test_what_is_dynamic_for_a_resource(resource: Resource, source: ConfigSource) -> None:
    every = [entry(each) for each in ConfigSource]
    assert dynamic_only(every, resource) == [entry(source)]
    assert dynamic_only(every, LOGGER_1) == every


def test_a_change_goes_to_the_broker_it_is_about() -> None:
    refused = AlterConfigsResourceResponse(error_code=40, error_message="no")
    answers = [
        IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse()]),
        IncrementalAlterConfigsResponse(responses=[refused]),
    ]
    scripted = describing_cluster(INCREMENTAL_ALTER_CONFIGS=answers)
    cluster = Cluster("b:1", connector=scripted.connect)
    incremental_alter_configs(cluster, BROKER_2, {"a": "1"}, ["b"])
    assert scripted.requests[-1][0] == BROKERS[2]
    with pytest.raises(ApiError, match="no"):
        incremental_alter_configs(cluster, TOPIC, {}, ["b"])


def test_changes_of_many_topics_are_several_requests() -> None:
    """The broker makes one after the other. All in one request exceeded the timeout."""
    answer = IncrementalAlterConfigsResponse(responses=[])
    scripted = describing_cluster(INCREMENTAL_ALTER_CONFIGS=answer)
    names = [f"t{index}" for index in range(PER_REQUEST + 1)]
    changes = {Resource(ResourceType.TOPIC, name): ConfigChanges({"a": "1"}) for name in names}
    alter_many_configs(Cluster("b:1", connector=scripted.connect), changes)
    requests = scripted.requests_of(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    sent = [[resource.resource_name for resource in request.resources] for request in requests]
    assert sent == [names[:PER_REQUEST], names[PER_REQUEST:]]


def test_subscriptions_to_client_metrics_are_named_by_the_broker() -> None:
    answer = ListConfigResourcesResponse(
        config_resources=[ConfigResource(resource_name="m"), ConfigResource(resource_name="a")]
    )
    scripted = describing_cluster(LIST_CONFIG_RESOURCES=answer)
    assert client_metrics_names(Cluster("b:1", connector=scripted.connect)) == ["a", "m"]


def test_groups_with_configs_are_named_by_brokers_that_list_all_resources() -> None:
    rows = [ConfigResource(resource_name=name, resource_type=32) for name in ("h", "g")]
    answer = ListConfigResourcesResponse(config_resources=rows)
    scripted = describing_cluster(LIST_CONFIG_RESOURCES=answer)
    assert group_names(Cluster("b:1", connector=scripted.connect)) == ["g", "h"]
    (asked,) = scripted.requests_of(ApiKey.LIST_CONFIG_RESOURCES)
    assert asked.resource_types == [32]
    scripted.versions = {**scripted.versions, ApiKey.LIST_CONFIG_RESOURCES: (0, 0)}
    with pytest.raises(ApiError) as error:
        group_names(Cluster("b:1", connector=scripted.connect))
    assert error.value.code is ErrorCode.UNSUPPORTED_VERSION
