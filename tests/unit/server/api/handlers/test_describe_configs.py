"""DescribeConfigs: which keys of a resource are described."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkapy.server.admin.broker_loggers import BrokerLoggers
from kafkapy.server.api.handlers import describe_configs
from kafkapy.server.api.handlers.describe_configs import Handler
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.config.dynamic_config import DynamicConfig
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.requests.turns import SliceScheduler
from kafkapy.zk.zookeeper import SessionExpired
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.request_contexts import request_context
from tests.harness.scripted.admins import metadata, store


@pytest.mark.parametrize(
    ("keys", "wanted"), [(None, None), ([], None), (["retention.ms"], {"retention.ms"})]
)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (ResourceType.TOPIC, "t"),
        (ResourceType.BROKER, "1"),
        (ResourceType.BROKER, ""),
        (ResourceType.CLIENT_METRICS, "all"),
        (ResourceType.GROUP, "g"),
    ],
)
def test_no_keys_are_all_keys(
    kind: ResourceType, name: str, keys: list[str] | None, wanted: set[str] | None
) -> None:
    """An empty list too (`kafka.server.ConfigHelper`)."""
    configs = MagicMock()
    configs.has_defaults_only.return_value = False
    handler = Handler(
        configs,
        Mock(catch_up=AsyncMock(return_value={})),
        metadata(("t",)),
        1,
        BrokerLoggers(1),
        SliceScheduler(),
    )
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource])
    response = asyncio.run(handler.handle(request_context(32, 4), request))
    assert response.results[0].error_code == 0
    _, args, named = configs.method_calls[-1]
    assert [*args, *named.values()][-1] == wanted


class Key(str):
    """Counts how often a key is compared with another."""

    __slots__ = ()
    looks = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Key.looks += 1
        return str.__eq__(self, other)


def test_many_keys_are_not_compared_with_each_config() -> None:
    """A million keys of one resource kept the event loop for seconds."""
    Key.looks = 0
    keys: list[str] = [Key(f"key-{number}") for number in range(2000)]
    handler = Handler(
        DynamicConfig(KafkaConfig({})),
        Mock(catch_up=AsyncMock(return_value={})),
        metadata(("t",)),
        1,
        BrokerLoggers(1),
        SliceScheduler(),
    )
    resource = DescribeConfigsResource(
        resource_type=ResourceType.BROKER,
        resource_name="1",
        configuration_keys=[*keys, "log.retention.ms"],
    )
    request = DescribeConfigsRequest(resources=[resource])
    response = asyncio.run(handler.handle(request_context(32, 4), request))
    assert [row.name for row in response.results[0].configs] == ["log.retention.ms"]
    assert Key.looks < 2 * len(keys)


def test_groups_without_configs_are_described_up_to_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each name of a few bytes has some KiB of defaults: 10 MB of them took the memory."""
    monkeypatch.setattr(describe_configs, "DEFAULTS_MAX", 2)
    configs = DynamicConfig(KafkaConfig({}))
    configs.set_group("set", {"consumer.session.timeout.ms": "46000"})
    nothing = Mock(catch_up=AsyncMock(return_value={}))
    handler = Handler(configs, nothing, metadata(("t",)), 1, BrokerLoggers(1), SliceScheduler())
    rows = [
        DescribeConfigsResource(resource_type=kind, resource_name=name)
        for kind, name in (
            (ResourceType.GROUP, "a"),
            (ResourceType.CLIENT_METRICS, "b"),
            (ResourceType.GROUP, "set"),
            (ResourceType.TOPIC, "t"),
            (ResourceType.GROUP, "c"),
        )
    ]
    request = DescribeConfigsRequest(resources=rows)
    results = asyncio.run(handler.handle(request_context(32, 4), request)).results
    errors = [ErrorCode(row.error_code) for row in results]
    assert errors == [*[ErrorCode.NONE] * 4, ErrorCode.INVALID_REQUEST]
    assert results[-1].configs == []


@pytest.mark.parametrize("is_lost", [False, True])
def test_the_configs_that_a_topic_elsewhere_was_created_with_are_described(
    is_lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its replicas hear of them. Without ZooKeeper what is known has to do."""

    async def scenario() -> str | None:
        znodes, configs = store(), DynamicConfig(KafkaConfig({"log.dirs": "/d"}))
        changes = ConfigChangeListener(znodes, ManualClock(), Mock())
        topic = TopicDescription("t", Uuid(bytes(15) + b"\1"), {0: (1,)})
        await znodes.create_topic(topic, {"retention.ms": "5"})
        if is_lost:
            lost = AsyncMock(side_effect=SessionExpired("/"))
            monkeypatch.setattr(znodes.configs, "get_each", lost)
        handler = Handler(configs, changes, metadata(("t",)), 2, BrokerLoggers(2), SliceScheduler())
        resource = DescribeConfigsResource(
            resource_type=ResourceType.TOPIC,
            resource_name="t",
            configuration_keys=["retention.ms"],
        )
        request = DescribeConfigsRequest(resources=[resource])
        response = await handler.handle(request_context(32, 4), request)
        value: str | None = response.results[0].configs[0].value
        return value

    assert asyncio.run(scenario()) == ("604800000" if is_lost else "5")


def test_configs_that_cannot_be_read_cost_no_other_resource_its_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A tool may write any value to the znode."""
    configs = DynamicConfig(KafkaConfig({"log.dirs": "/d"}))
    configs.topic_overrides["bad"] = {"retention.ms": "x"}
    changes = Mock(catch_up=AsyncMock(return_value={}))
    handler = Handler(
        configs, changes, metadata(("bad", "t")), 1, BrokerLoggers(1), SliceScheduler()
    )
    resources = [
        DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name)
        for name in ("bad", "t")
    ]
    request = DescribeConfigsRequest(resources=resources)
    bad, good = asyncio.run(handler.handle(request_context(32, 4), request)).results
    assert (bad.error_code, bad.configs) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    assert good.error_code == ErrorCode.NONE
    assert good.configs
    assert "Invalid value x for configuration retention.ms" in caplog.text
