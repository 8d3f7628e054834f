"""Requests to servers, leaders, controllers and coordinators, and retries when those move."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.cluster import Cluster, error_codes
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkapy.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkapy.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kafkapy.protocol.messages.metadata import MetadataResponse
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata
from tests.harness.scripted.stepped_time import SteppedTime

TOPICS = {"t": {0: (1, [1, 2], [1]), 1: (2, [2, 1], [2])}}


def cluster_on(scripted: ScriptedCluster, servers: str = "b:9092", **extra: str) -> Cluster:
    return Cluster(servers, extra, connector=scripted.connect)


def test_known_topics_are_answered_from_memory() -> None:
    scripted = ScriptedCluster({ApiKey.METADATA: metadata(TOPICS)})
    with cluster_on(scripted) as cluster:
        first = cluster.metadata(["t"])
        assert cluster.metadata(["t"]).topics == first.topics
        assert len(scripted.requests_of(ApiKey.METADATA)) == 1
        cluster.metadata(["t"], refresh=True)
        cluster.invalidate_topics(["t"])
        cluster.metadata(["t"])
        assert len(scripted.requests_of(ApiKey.METADATA)) == 3
    assert all(connection.closed for connection in scripted.connections)


def test_metadata_never_creates_a_topic() -> None:
    scripted = ScriptedCluster({ApiKey.METADATA: metadata(TOPICS)})
    found = cluster_on(scripted).metadata(["missing"])
    assert found.topics["missing"].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [r.allow_auto_topic_creation for r in scripted.requests_of(ApiKey.METADATA)] == [False]


def test_a_broker_that_would_create_the_topic_is_not_asked_for_it() -> None:
    """Metadata requests before version 4 always create missing topics."""
    versions = {ApiKey.API_VERSIONS: (0, 3), ApiKey.METADATA: (0, 3)}
    scripted = ScriptedCluster({ApiKey.METADATA: metadata(TOPICS)}, versions)
    cluster = cluster_on(scripted)
    with pytest.raises(ApiError, match=r"does not support METADATA with version in range \[4,"):
        cluster.metadata(["missing"])
    assert scripted.requests_of(ApiKey.METADATA) == []
    assert set(cluster.metadata().topics) == {"t"}
    assert cluster.metadata([], refresh=True).topics == {}
    assert cluster.metadata(["t"], refresh=True, create=True).topics["t"].error == 0


def test_a_broker_that_has_just_started_is_asked_again() -> None:
    """It knows no broker and no topic: what it does not know is not deleted."""
    scripted = ScriptedCluster({ApiKey.METADATA: [MetadataResponse(), metadata(TOPICS)]})
    assert cluster_on(scripted).metadata(["t"]).topics["t"].error is ErrorCode.NONE
    never = ScriptedCluster({ApiKey.METADATA: MetadataResponse()})
    with pytest.raises(ApiError, match="b:9092 has just started and has no metadata yet"):
        cluster_on(never).metadata()


def test_an_address_without_an_answer_is_left_after_the_time_that_the_user_sets() -> None:
    scripted = ScriptedCluster({ApiKey.METADATA: metadata()})
    limits = []

    def connect(host: str, port: int, security: Any, timeout_s: float) -> Any:
        limits.append(timeout_s)
        return scripted.connect(host, port, security, timeout_s)

    for given in ({}, {"socket.connection.setup.timeout.ms": "1500"}):
        Cluster("b:1", given, connector=connect).metadata([])
    assert limits == [10, 1.5]


def test_the_next_bootstrap_server_is_tried() -> None:
    scripted = ScriptedCluster({ApiKey.METADATA: metadata()})
    scripted.refuse = {1}
    assert cluster_on(scripted, "b:1,b:2").metadata([]).cluster_id == "cluster"
    assert [port for port, _, _ in scripted.requests] == [2, 2]


def test_an_unreachable_cluster_is_said_at_once() -> None:
    scripted = ScriptedCluster({})
    scripted.refuse = {1, 2}
    with pytest.raises(ApiError, match=r"b:2 could not be established: Connection refused") as e:
        cluster_on(scripted, "b:1,b:2").metadata([])
    assert e.value.code is ErrorCode.BROKER_NOT_AVAILABLE


def test_a_first_broker_that_restarts_is_awaited_before_it_has_sent_metadata() -> None:
    lost: list[Any] = [ConnectionResetError(104, "reset"), metadata()]
    scripted = ScriptedCluster({ApiKey.METADATA: lost})
    is_up = iter([True, False, True])

    def connect(host: str, port: int, security: Any, timeout_s: float) -> Any:
        scripted.refuse = set() if next(is_up) else {port}
        return scripted.connect(host, port, security, timeout_s)

    assert Cluster("b:9092", connector=connect).metadata([]).cluster_id == "cluster"


def test_another_broker_is_asked_when_one_hangs() -> None:
    def answer(request: Any, port: int) -> Any:
        return TimeoutError() if port == 1 else metadata(TOPICS)(request, port)

    scripted = ScriptedCluster({ApiKey.METADATA: answer})
    assert cluster_on(scripted, "b:1,b:2").leader_of(TopicPartition("t", 0)) == 1
    assert [port for port, r, _ in scripted.requests if r.API_KEY == ApiKey.METADATA] == [1, 2]


def test_a_change_is_not_repeated_when_its_broker_hangs() -> None:
    script = {ApiKey.METADATA: metadata(), ApiKey.CREATE_TOPICS: TimeoutError()}
    scripted = ScriptedCluster(script)
    with pytest.raises(ApiError, match="did not answer CREATE_TOPICS"):
        cluster_on(scripted).controller_request(CreateTopicsRequest())
    assert len(scripted.requests_of(ApiKey.CREATE_TOPICS)) == 1


def test_a_lost_connection_is_opened_again() -> None:
    answers: list[Any] = [metadata(), ConnectionResetError(104, "reset"), metadata()]
    scripted = ScriptedCluster({ApiKey.METADATA: answers})
    cluster = cluster_on(scripted)
    cluster.metadata([])
    assert cluster.metadata([], refresh=True).cluster_id == "cluster"
    assert [connection.closed for connection in scripted.connections] == [True, False]


def test_a_leader_is_waited_for() -> None:
    leaderless = metadata({"t": {0: (-1, [1], [1])}})
    scripted = ScriptedCluster({ApiKey.METADATA: [leaderless, leaderless, metadata(TOPICS)]})
    assert cluster_on(scripted).leader_of(TopicPartition("t", 0)) == 1


def test_nested_retries_end_with_the_api_timeout_and_not_a_minute_later(
    stepped_time: SteppedTime,
) -> None:
    """`leader_of` waits for a leader, and the metadata of each attempt for a broker."""
    begin_s = stepped_time.monotonic()
    answers = iter([25, 25])

    def answer(request: Any, port: int) -> Any:
        leaderless = metadata({"t": {0: (-1, [1], [1])}})
        for seconds in answers:
            stepped_time.sleep(seconds)
            return leaderless(request, port)
        stepped_time.sleep(scripted.connections[-1].limit_s or 0)
        return ConnectionResetError(104, "reset")

    scripted = ScriptedCluster({ApiKey.METADATA: answer})
    cluster = cluster_on(scripted)
    with pytest.raises(ApiError, match="reset"):
        cluster.leader_of(TopicPartition("t", 0))
    assert stepped_time.monotonic() - begin_s <= 61
    scripted.script[ApiKey.METADATA] = metadata(TOPICS)  # the next call has time of its own
    assert cluster.leader_of(TopicPartition("t", 0)) == 1
    assert scripted.connections[-1].limit_s == pytest.approx(30, abs=1)


@pytest.mark.parametrize(
    ("topics", "code"),
    [
        ({"t": {0: (-1, [1], [1])}}, ErrorCode.LEADER_NOT_AVAILABLE),
        ({"t": {1: (1, [1], [1])}}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_no_leader_is_an_error_in_the_end(topics: Any, code: ErrorCode) -> None:
    scripted = ScriptedCluster({ApiKey.METADATA: metadata(topics)})
    with pytest.raises(ApiError) as caught:
        cluster_on(scripted).leader_of(TopicPartition("t", 0))
    assert caught.value.code is code


def test_a_topic_that_may_not_be_seen_is_not_called_gone() -> None:
    refused = metadata(errors={"t": ErrorCode.TOPIC_AUTHORIZATION_FAILED})
    with pytest.raises(ApiError) as caught:
        cluster_on(ScriptedCluster({ApiKey.METADATA: refused})).leader_of(TopicPartition("t", 0))
    assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_the_controller_is_found_again_when_it_moved() -> None:
    def create(request: Any, port: int) -> CreateTopicsResponse:
        code = ErrorCode.NOT_CONTROLLER if port == 9001 else ErrorCode.NONE
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=code)])

    brokers = {1: 9001, 2: 9002}
    scripted = ScriptedCluster(
        {
            ApiKey.METADATA: [
                metadata(brokers=brokers, controller=1),
                metadata(brokers=brokers, controller=2),
            ],
            ApiKey.CREATE_TOPICS: create,
        }
    )
    response = cluster_on(scripted).controller_request(CreateTopicsRequest())
    assert response.topics[0].error_code == ErrorCode.NONE
    ports = [port for port, r, _ in scripted.requests if r.API_KEY == ApiKey.CREATE_TOPICS]
    assert ports == [9001, 9002]


def test_a_change_waits_for_the_next_controller_while_metadata_name_one_that_is_gone() -> None:
    """As those of Apache Kafka's brokers do until the new controller's first update."""
    answers = [metadata(brokers={1: 9001}, controller=2), metadata(brokers={1: 9001})]
    script = {ApiKey.METADATA: answers, ApiKey.CREATE_TOPICS: CreateTopicsResponse()}
    cluster_on(ScriptedCluster(script)).controller_request(CreateTopicsRequest())


def test_a_refusal_by_the_controller_is_not_retried() -> None:
    refusal = CreatableTopicResult(name="t", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)
    answer = CreateTopicsResponse(topics=[refusal])
    scripted = ScriptedCluster({ApiKey.METADATA: metadata(), ApiKey.CREATE_TOPICS: answer})
    assert cluster_on(scripted).controller_request(CreateTopicsRequest()).topics == [refusal]
    assert len(scripted.requests_of(ApiKey.CREATE_TOPICS)) == 1


def test_a_cluster_without_a_controller_is_an_error_in_the_end() -> None:
    scripted = ScriptedCluster({ApiKey.METADATA: metadata(controller=-1)})
    with pytest.raises(ApiError, match="no controller"):
        cluster_on(scripted).controller_request(CreateTopicsRequest())


def test_the_coordinator_is_waited_for() -> None:
    found = [
        FindCoordinatorResponse(
            coordinators=[Coordinator(key="g", node_id=5, host="b", port=9005, error_code=code)]
        )
        for code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE)
    ]
    answers: list[Any] = [
        OffsetFetchResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        OffsetFetchResponse(),
    ]
    versions = {
        ApiKey.OFFSET_FETCH: (0, 7),
        ApiKey.FIND_COORDINATOR: (0, 4),
        ApiKey.API_VERSIONS: (0, 3),
    }
    script = {ApiKey.FIND_COORDINATOR: found, ApiKey.OFFSET_FETCH: answers}
    scripted = ScriptedCluster(script, versions)
    request = OffsetFetchRequest(group_id="g", topics=[])
    cluster = cluster_on(scripted, **{"default.api.timeout.ms": "60000"})
    assert cluster.coordinator_request("g", request).error_code == 0
    ports = [port for port, r, _ in scripted.requests if r.API_KEY == ApiKey.OFFSET_FETCH]
    assert ports == [9005, 9005]


def coordinated(**script: Any) -> ScriptedCluster:
    """A cluster whose broker 5 coordinates the group g. Broker 6 is the other one."""
    found = Coordinator(key="g", node_id=5, host="b", port=9005)
    answers = {
        ApiKey.METADATA: metadata(brokers={5: 9005, 6: 9006}),
        ApiKey.FIND_COORDINATOR: FindCoordinatorResponse(coordinators=[found]),
        **{ApiKey[name]: answer for name, answer in script.items()},
    }
    return ScriptedCluster(answers)


def test_a_read_is_repeated_when_the_coordinator_hangs() -> None:
    """The next coordinator is found through another broker."""
    scripted = coordinated(OFFSET_FETCH=[TimeoutError(), OffsetFetchResponse()])
    cluster = cluster_on(scripted, "b:9005")
    cluster.metadata([])
    request = OffsetFetchRequest(group_id="g", topics=[])
    cluster.coordinator_request("g", request, is_repeatable=True)
    ports = [port for port, r, _ in scripted.requests if r.API_KEY == ApiKey.FIND_COORDINATOR]
    assert ports == [9005, 9006]


def test_a_change_at_a_coordinator_is_sent_once_however_many_brokers_hang() -> None:
    """No change is sent before the coordinator is known, so its search is repeated."""
    lost = [TimeoutError(), coordinated().script[ApiKey.FIND_COORDINATOR]]
    scripted = coordinated(FIND_COORDINATOR=lost, DELETE_GROUPS=TimeoutError())
    with pytest.raises(ApiError, match="did not answer DELETE_GROUPS"):
        cluster_on(scripted).coordinator_request("g", DeleteGroupsRequest())
    assert len(scripted.requests_of(ApiKey.FIND_COORDINATOR)) == 2
    assert len(scripted.requests_of(ApiKey.DELETE_GROUPS)) == 1


def test_a_broker_that_hangs_at_the_connection_is_tried_last() -> None:
    def answer(request: Any, port: int) -> Any:
        keys = [ApiVersion(api_key=key, max_version=9) for key in (ApiKey.METADATA,)]
        return TimeoutError() if port == 1 else ApiVersionsResponse(api_keys=keys)

    scripted = ScriptedCluster({ApiKey.API_VERSIONS: answer, ApiKey.METADATA: metadata()})
    cluster = cluster_on(scripted, "b:1,b:2")
    for _ in range(2):
        cluster.metadata([], refresh=True)
        cluster.channel().close()
    assert [port for port, r, _ in scripted.requests if r.API_KEY == ApiKey.API_VERSIONS] == [
        *(1, 2),
        2,
    ]


def test_an_unknown_broker_is_named() -> None:
    scripted = ScriptedCluster({ApiKey.METADATA: metadata()})
    with pytest.raises(ApiError, match="Broker 7 is not available"):
        cluster_on(scripted).request(CreateTopicsRequest(), broker_id=7)


def test_a_bad_timeout_is_named() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value soon for configuration request\.timeout"):
        Cluster("b:1", {"request.timeout.ms": "soon"})
    limits = ("request.timeout.ms", "default.api.timeout.ms", "socket.connection.setup.timeout.ms")
    for name in (*limits, "retry.backoff.ms"):
        with pytest.raises(ConfigError, match=f"{name}: Value must be at least 0"):
            Cluster("b:1", {name: "-1"})


def test_a_frozen_broker_is_reported_within_the_api_timeout() -> None:
    scripted = ScriptedCluster({ApiKey.METADATA: TimeoutError()})
    with pytest.raises(ApiError, match="b:9092 did not answer METADATA within 1000 ms"):
        cluster_on(scripted, **{"default.api.timeout.ms": "1000"}).metadata([])


@pytest.mark.parametrize(
    "name",
    ["default.api.timeout.ms", "request.timeout.ms", "socket.connection.setup.timeout.ms"],
)
def test_no_time_is_the_shortest_time_and_not_a_socket_that_never_blocks(name: str) -> None:
    """Its connection failed with "Operation now in progress", at a healthy broker."""
    scripted = ScriptedCluster({ApiKey.METADATA: metadata()})

    def connect(host: str, port: int, security: Any, timeout_s: float) -> Any:
        assert timeout_s > 0  # `ScriptedTransport` asserts the same for requests
        return scripted.connect(host, port, security, timeout_s)

    assert Cluster("b:1", {name: "0"}, connector=connect).metadata([]).cluster_id == "cluster"


def test_a_request_timeout_above_the_default_api_timeout_is_kept() -> None:
    cluster = Cluster("b:1", {"request.timeout.ms": "120000"})
    assert (cluster.request_timeout_ms, cluster.api_timeout_ms) == (120_000, 120_000)


def test_error_codes_reach_one_level_down() -> None:
    item = CreatableTopicResult(name="t", error_code=7)
    assert error_codes(CreateTopicsResponse(topics=[item])) == [7]
    assert error_codes(OffsetFetchResponse(error_code=3)) == [3]
