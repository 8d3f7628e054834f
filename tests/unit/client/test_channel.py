"""One connection: versions agreed, frames in any chunking, and nothing trusted after a failure."""

import pytest

from kafkapy.client.channel import FIRST_RESPONSE_BYTES_MAX, Channel
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode, ProtocolViolation
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafkapy.protocol.messages.metadata import MetadataRequest
from tests.harness.scripted.scripted_broker import ScriptedCluster, ScriptedTransport, metadata


def channel_to(cluster: ScriptedCluster) -> tuple[Channel, ScriptedTransport]:
    transport = cluster.connect("b", 9092, None, 1)
    return Channel(transport, "b:9092", "tester"), transport


@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_a_response_in_any_chunking(chunk: int) -> None:
    channel, _ = channel_to(ScriptedCluster({ApiKey.METADATA: metadata()}, chunk=chunk))
    channel.negotiate(1000)
    response = channel.exchange(MetadataRequest(topics=[]), 12, 1000)
    assert response.cluster_id == "cluster"


def test_the_highest_common_version_is_chosen() -> None:
    cluster = ScriptedCluster({}, {ApiKey.METADATA: (2, 7), ApiKey.API_VERSIONS: (0, 3)})
    channel, _ = channel_to(cluster)
    channel.negotiate(1000)
    assert channel.version_for(MetadataRequest()) == 7
    assert channel.version_for(MetadataRequest(), max_version=5) == 5


def test_no_common_version_is_said_in_kafkas_words() -> None:
    cluster = ScriptedCluster({}, {ApiKey.METADATA: (2, 7)})
    channel, _ = channel_to(cluster)
    channel.negotiate(1000)
    with pytest.raises(ApiError, match=r"does not support METADATA with version in range \[9,13\]"):
        channel.version_for(MetadataRequest(), min_version=9)
    channel.api_versions.clear()
    with pytest.raises(ApiError, match=r"The broker does not support METADATA$"):
        channel.version_for(MetadataRequest())


def test_an_old_broker_refuses_our_api_versions_and_is_asked_in_version_0() -> None:
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    accepted = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=5)]
    )
    cluster = ScriptedCluster({ApiKey.API_VERSIONS: [(refusal, 0), accepted]})
    channel, _ = channel_to(cluster)
    channel.negotiate(1000)
    assert channel.api_versions == {ApiKey.METADATA: (0, 5)}
    assert [version for _, _, version in cluster.requests] == [3, 0]


def test_a_refused_negotiation_closes() -> None:
    refusal = ApiVersionsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    channel, transport = channel_to(ScriptedCluster({ApiKey.API_VERSIONS: (refusal, 0)}))
    with pytest.raises(ApiError, match="b:9092 refused ApiVersions"):
        channel.negotiate(1000)
    assert transport.closed


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (TimeoutError(), ErrorCode.REQUEST_TIMED_OUT, "did not answer METADATA within 1000 ms"),
        (ConnectionResetError(104, "reset"), ErrorCode.NETWORK_EXCEPTION, "was lost: reset"),
        (b"", ErrorCode.NETWORK_EXCEPTION, "was lost: the broker closed it"),
    ],
)
def test_a_failed_exchange_closes_and_says_why(failure: object, code: ErrorCode, said: str) -> None:
    channel, transport = channel_to(ScriptedCluster({ApiKey.METADATA: failure}))
    with pytest.raises(ApiError, match=said) as caught:
        channel.exchange(MetadataRequest(topics=[]), 12, 1000)
    assert caught.value.code is code
    assert transport.closed
    assert channel.closed


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "not a Kafka broker"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "not a Kafka broker"),
        ((FIRST_RESPONSE_BYTES_MAX + 1).to_bytes(4, "big"), "not a Kafka broker"),
        (b"\x00\x00\x00\x02ab", "2 bytes"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x63\x00", "METADATA|Metadata|answered|bytes"),
    ],
)
def test_what_is_not_kafka_is_refused(answer: bytes, said: str) -> None:
    channel, transport = channel_to(ScriptedCluster({ApiKey.METADATA: answer}))
    with pytest.raises(ProtocolViolation, match=said):
        channel.exchange(MetadataRequest(topics=[]), 12, 1000)
    assert transport.closed


def test_a_broker_may_send_a_batch_of_any_size() -> None:
    sizes: list[int] = []

    def allocate(size: int) -> memoryview:
        sizes.append(size)
        return memoryview(bytearray(4))

    answer = (FIRST_RESPONSE_BYTES_MAX + 1).to_bytes(4, "big")
    transport = ScriptedCluster({ApiKey.METADATA: answer}).connect("b", 9092, None, 1)
    channel = Channel(transport, "b:9092", "tester")
    channel.negotiate(1000)
    channel._allocate = allocate
    with pytest.raises(ApiError, match="the broker closed it"):
        channel.exchange(MetadataRequest(topics=[]), 12, 1000)
    assert sizes == [FIRST_RESPONSE_BYTES_MAX + 1]


def test_an_answer_to_another_request_is_refused() -> None:
    body = b"\x00\x00\x00\x63" + bytes(2) + b"\x00" * 4
    cluster = ScriptedCluster({ApiKey.API_VERSIONS: len(body).to_bytes(4, "big") + body})
    channel, transport = channel_to(cluster)
    with pytest.raises(ProtocolViolation, match="answered request 99 instead of 1"):
        channel.exchange(ApiVersionsRequest(), 0, 1000)
    assert transport.closed


def test_a_request_after_an_interrupted_one_does_not_get_its_answer() -> None:
    cluster = ScriptedCluster({ApiKey.METADATA: [KeyboardInterrupt(), metadata()]})
    client = Cluster("b:9092", connector=cluster.connect)
    with pytest.raises(KeyboardInterrupt):
        client.metadata([])
    assert cluster.connections[0].closed
    assert client.metadata([]).cluster_id == "cluster"
    assert len(cluster.connections) == 2


def test_a_request_sent_ahead_is_sent_once_and_answered_when_it_is_wanted() -> None:
    cluster = ScriptedCluster({ApiKey.METADATA: metadata()})
    channel, _ = channel_to(cluster)
    request = MetadataRequest(topics=[])
    channel.send_ahead(request, 12, 1000)
    assert len(cluster.requests) == 1
    assert channel.outstanding_request is request
    with pytest.raises(
        AssertionError, match="b:9092 has the response to another request outstanding"
    ):
        channel.exchange(MetadataRequest(), 12, 1000)
    assert channel.exchange(request, 12, 1000).cluster_id == "cluster"
    assert channel.outstanding_request is None
    assert len(cluster.requests) == 1


def test_what_cannot_be_sent_ahead_closes_and_owes_nothing() -> None:
    channel, transport = channel_to(ScriptedCluster({}))

    def broken(data: bytes) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    transport.sendall = broken  # type: ignore[method-assign]
    channel.send_ahead(MetadataRequest(topics=[]), 12, 1000)
    assert (channel.closed, channel.outstanding_request) == (True, None)


def test_a_request_after_one_half_sent_ahead_is_not_sent_on_its_connection() -> None:
    channel, transport = channel_to(ScriptedCluster({}))

    def interrupted(data: bytes) -> None:
        raise KeyboardInterrupt

    transport.sendall = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        channel.send_ahead(MetadataRequest(topics=[]), 12, 1000)
    assert channel.closed


def test_responses_are_read_into_the_memory_that_is_given() -> None:
    given: list[memoryview] = []

    def allocate(size: int) -> memoryview:
        given.append(memoryview(bytearray(b"\xff" * size)))
        return given[-1]

    transport = ScriptedCluster({ApiKey.METADATA: metadata()}).connect("b", 9092, None, 1)
    channel = Channel(transport, "b:9092", "tester", allocate)
    assert channel.exchange(MetadataRequest(topics=[]), 12, 1000).cluster_id == "cluster"
    assert [b"cluster" in bytes(view) for view in given] == [True]
