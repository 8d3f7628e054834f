"""The request log: its fields, and the contents that it leaves out."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from kafkapy.common.config_def import ResourceType
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.headers import RequestHeader
from kafkapy.protocol.messages import alter_configs, incremental_alter_configs
from kafkapy.protocol.messages.alter_configs import AlterConfigsRequest
from kafkapy.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kafkapy.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkapy.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkapy.server.api.handler_support import ELEMENTS_AT_ONCE
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.request_log import log_when_complete, request_logger
from kafkapy.server.requests.outcomes import CLOSE_CONNECTION, NO_RESPONSE, Pending
from tests.harness.protocol.protocol_examples import all_messages, filled

CALLER: Any = SimpleNamespace(peer="10.0.0.7:5000", client_software=("kafka-rs", "1.2"))


@pytest.fixture(autouse=True)
def requests_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, request_logger.name)


def context_of(message: Any, version: int) -> RequestContext:
    header = RequestHeader(message.API_KEY, version, 77, "me")
    return RequestContext(header, "10.0.0.7", "INSIDE", "User:alice", caller=CALLER)


def log(request: Any, outcome: Any, version: int) -> Any:
    return log_when_complete(outcome, context_of(request, version), request, 0.0, 0.002)


def lines(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [
        orjson.loads(record.getMessage().removeprefix("Completed request:"))
        for record in caplog.records
    ]


def test_a_line_has_the_request_the_response_and_the_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    response = HeartbeatResponse(error_code=27)
    assert log(request, response, 3) is response
    [line] = lines(caplog)
    assert line["totalTimeMs"] == pytest.approx(line["localTimeMs"] + line["remoteTimeMs"])
    assert line["localTimeMs"] == 2.0
    assert {key: value for key, value in line.items() if not key.endswith("TimeMs")} == {
        "requestHeader": {
            "requestApiKey": 12,
            "requestApiVersion": 3,
            "correlationId": 77,
            "clientId": "me",
            "requestApiKeyName": "HEARTBEAT",
        },
        "request": {"groupId": "g", "generationId": 3, "memberId": "m", "groupInstanceId": None},
        "response": {"throttleTimeMs": 0, "errorCode": 27},
        "connection": "10.0.0.7:5000",
        "principal": "User:alice",
        "listener": "INSIDE",
        "clientInformation": {"softwareName": "kafka-rs", "softwareVersion": "1.2"},
    }


def test_a_request_that_waits_is_logged_when_it_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pending: Pending[HeartbeatResponse] = Pending()
    later = log(HeartbeatRequest(), pending, 0)
    answered: list[Any] = []
    later.when_complete(answered.append)
    assert not lines(caplog)
    response = HeartbeatResponse(error_code=25)
    pending.complete(response)
    assert answered == [response]
    assert [line["response"] for line in lines(caplog)] == [{"errorCode": 25}]


def test_a_produce_without_acks_is_logged_without_a_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert log(HeartbeatRequest(), NO_RESPONSE, 0) is NO_RESPONSE
    assert log(HeartbeatRequest(), CLOSE_CONNECTION, 0) is CLOSE_CONNECTION
    assert [line["response"] for line in lines(caplog)] == [None]


def test_no_line_has_records_or_credentials(caplog: pytest.LogCaptureFixture) -> None:
    data = PartitionProduceData(index=4, records=b"secret")
    topics = [TopicProduceData(name="t", partition_data=[data])]
    log(ProduceRequest(acks=-1, topic_data=topics), NO_RESPONSE, 9)
    upsertion = ScramCredentialUpsertion(name="u", salt=b"salty", salted_password=b"secret")
    log(AlterUserScramCredentialsRequest(upsertions=[upsertion]), NO_RESPONSE, 0)
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"secret")
    log(JoinGroupRequest(group_id="g", protocols=[protocol]), NO_RESPONSE, 5)
    assert "secret" not in caplog.text
    produce, scram, join = (line["request"] for line in lines(caplog))
    [topic] = produce["topicData"]
    assert topic == {"name": "t", "partitionData": [{"index": 4, "recordsSizeInBytes": 6}]}
    [credential] = scram["upsertions"]
    assert (credential["saltSizeInBytes"], credential["saltedPasswordSizeInBytes"]) == (5, 6)
    assert join["protocols"] == [{"name": "range", "metadataSizeInBytes": 6}]


@pytest.mark.parametrize("messages", [alter_configs, incremental_alter_configs])
def test_values_of_broker_configs_that_may_be_secret_are_redacted(
    caplog: pytest.LogCaptureFixture, messages: Any
) -> None:
    def resource(kind: ResourceType, *names: str) -> Any:
        configs = [messages.AlterableConfig(name=name, value=f"value of {name}") for name in names]
        return messages.AlterConfigsResource(resource_type=kind, configs=configs)

    request_class: Any = AlterConfigsRequest
    if messages is incremental_alter_configs:
        request_class = IncrementalAlterConfigsRequest
    names = ("ssl.keystore.password", "listener.name.a.ssl.key.password", "background.threads")
    resources = [
        resource(ResourceType.BROKER, *names),
        resource(ResourceType.TOPIC, "retention.ms"),
    ]
    log(request_class(resources=resources), NO_RESPONSE, 1)
    [line] = lines(caplog)
    values = [[c["value"] for c in row["configs"]] for row in line["request"]["resources"]]
    assert values == [
        ["(redacted)", "(redacted)", "value of background.threads"],
        ["value of retention.ms"],
    ]


def test_only_fields_of_the_version_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    uuid = Uuid(bytes(range(16)))
    request = FetchRequest(topics=[FetchTopic(topic="t", topic_id=uuid)])
    log(request, NO_RESPONSE, 13)
    log(request, NO_RESPONSE, 12)
    new, old = (line["request"]["topics"][0] for line in lines(caplog))
    assert new == {"topicId": str(uuid), "partitions": []}
    assert old == {"topic": "t", "partitions": []}


def test_records_of_several_segments_have_one_size(caplog: pytest.LogCaptureFixture) -> None:
    data = PartitionData(records=[b"12345", b"678"])
    log(FetchRequest(), FetchResponse(responses=[FetchableTopicResponse(partitions=[data])]), 12)
    [line] = lines(caplog)
    [topic] = line["response"]["responses"]
    assert topic["partitions"][0]["recordsSizeInBytes"] == 8


def test_a_body_that_is_too_large_for_a_slice_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    topics = [MetadataResponseTopic(name="t") for _ in range(ELEMENTS_AT_ONCE + 1)]
    log(HeartbeatRequest(), MetadataResponse(topics=topics), 0)
    [line] = lines(caplog)
    assert (line["response"], line["request"]["groupId"]) == (None, "")


def test_every_message_can_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A request whose line cannot be made would close its connection."""
    messages = all_messages()
    for message_class, version in messages:
        log(HeartbeatRequest(), filled(message_class, version), version)
    assert len(lines(caplog)) == len(messages)
