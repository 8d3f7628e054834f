"""Each rule in front of a handler that writes down what it was asked: what comes through, what is
answered for the rest, and that no served API was forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import (
    consumer_group_describe,
    create_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_transactions,
    find_coordinator,
    heartbeat,
    init_producer_id,
    list_groups,
    list_transactions,
    metadata,
    produce,
)
from kafkapy.security.acls import CLUSTER_NAME, Operation, ResourceKind
from kafkapy.server.api.handler_support import ELEMENTS_AT_ONCE
from kafkapy.server.api.handler_table import rules
from kafkapy.server.api.handlers import SERVED
from kafkapy.server.requests.outcomes import CLOSE_CONNECTION, NO_RESPONSE, Pending, ThreadCall
from kafkapy.server.requests.turns import CHECK_UNITS, SLICE_UNITS, run_now
from tests.harness.scripted.recording_handler import RecordingHandler

TOPIC, GROUP, CLUSTER = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER
_O = Operation
# What may be asked before one has said who one is.
OF_EVERYBODY = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
# Metrics of any client may be pushed.
OF_CLIENTS = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
# Their handlers ask `is_allowed` for the rows that only they know.
ASK_THEMSELVES = {
    ApiKey.FETCH,
    ApiKey.DELETE_TOPICS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.OFFSET_FETCH,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
}
# Whom a token belongs to, or who may renew it, needs no entry.
OF_PRINCIPALS = {ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}

TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_no_served_api_is_without_a_rule() -> None:
    assert set(rules(True)) == (
        set(SERVED) - OF_EVERYBODY - OF_CLIENTS - ASK_THEMSELVES - OF_PRINCIPALS
    )


def test_a_whole_request_is_refused_before_its_handler() -> None:
    handler = RecordingHandler(ApiKey.HEARTBEAT, 4, (GROUP, "mine", _O.READ))
    assert handler.ask(heartbeat.HeartbeatRequest(group_id="mine", member_id="m"), "yes") == "yes"
    with pytest.raises(ApiError) as refusal:
        handler.ask(heartbeat.HeartbeatRequest(group_id="other", member_id="m"))
    assert refusal.value.code is GROUP_REFUSED
    assert len(handler.requests) == 1


def produced(*topics: str, acks: int = 1, transaction: str | None = None) -> Any:
    rows = [
        produce.TopicProduceData(
            name=name, partition_data=[produce.PartitionProduceData(index=0, records=b"")]
        )
        for name in topics
    ]
    return produce.ProduceRequest(acks=acks, topic_data=rows, transactional_id=transaction)


def answered(*topics: str) -> Any:
    rows = [produce.TopicProduceResponse(name=name, partition_responses=[]) for name in topics]
    return produce.ProduceResponse(responses=rows)


def codes(response: Any) -> dict[str, list[int]]:
    return {
        topic.name: [row.error_code for row in topic.partition_responses]
        for topic in response.responses
    }


def test_refused_rows_join_the_answer_now_or_later() -> None:
    handler = RecordingHandler(ApiKey.PRODUCE, 9, (TOPIC, "mine", _O.WRITE))
    request = produced("mine", "other")
    expected = {"mine": [], "other": [TOPIC_REFUSED]}
    assert codes(handler.ask(request, answered("mine"))) == expected
    assert [row.name for row in handler.requests[0].topic_data] == ["mine"]
    assert len(request.topic_data) == 2, "what is logged or refused is the whole request"
    pending = Pending()
    later = handler.ask(request, pending)
    assert not later.done
    pending.complete(answered("mine"))
    assert codes(later.response) == expected


def test_a_connection_that_goes_takes_the_handlers_pending_with_it() -> None:
    handler = RecordingHandler(ApiKey.PRODUCE, 9, (TOPIC, "mine", _O.WRITE))
    pending, gone = Pending(), []
    pending.on_abandon = lambda: gone.append(True)
    handler.ask(produced("mine", "other"), pending).abandon()
    assert gone == [True]


def test_nothing_allowed_is_answered_without_the_handler() -> None:
    handler = RecordingHandler(ApiKey.PRODUCE, 9)
    assert codes(handler.ask(produced("other"))) == {"other": [TOPIC_REFUSED]}
    assert handler.requests == []


def test_a_row_of_many_partitions_is_refused_by_another_thread() -> None:
    """One topic had 80,000 of them, which the loop refused in one go."""
    handler = RecordingHandler(ApiKey.PRODUCE, 9)
    request = produced("other")
    request.topic_data[0].partition_data *= ELEMENTS_AT_ONCE + 1
    work = handler.handle(handler.context, request)
    assert any(isinstance(step, ThreadCall) for step in work)
    assert codes(handler.ask(request)) == {"other": [TOPIC_REFUSED] * (ELEMENTS_AT_ONCE + 1)}


def test_a_produce_without_acknowledgement_closes_the_connection() -> None:
    handler = RecordingHandler(ApiKey.PRODUCE, 9, (TOPIC, "mine", _O.WRITE))
    assert handler.ask(produced("mine", "other", acks=0), NO_RESPONSE) is CLOSE_CONNECTION
    assert len(handler.requests) == 1, "what is allowed is appended"
    assert handler.ask(produced("mine", acks=0), NO_RESPONSE) is NO_RESPONSE


def test_a_transactional_produce_needs_its_id() -> None:
    handler = RecordingHandler(ApiKey.PRODUCE, 9, (TOPIC, "mine", _O.WRITE))
    with pytest.raises(ApiError) as refusal:
        handler.ask(produced("mine", transaction="t"))
    assert refusal.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    "grant", [(CLUSTER, "kafka-cluster", _O.IDEMPOTENT_WRITE), (TOPIC, "any", _O.WRITE), None]
)
def test_a_producer_id_is_for_who_may_write_something(grant: Any) -> None:
    handler = RecordingHandler(ApiKey.INIT_PRODUCER_ID, 4, *([grant] if grant else []))
    request = init_producer_id.InitProducerIdRequest(transactional_id=None)
    if grant:
        assert handler.ask(request, "id") == "id"
        return
    with pytest.raises(ApiError) as refusal:
        handler.ask(request)
    assert refusal.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_refused_producer_id_checks_the_users_of_the_cluster_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With an entry for each user, they were scanned twice, and other clients waited as long."""
    handler = RecordingHandler(ApiKey.INIT_PRODUCER_ID, 4)
    checked: list[Any] = []
    monkeypatch.setattr(AclAuthorizer, "is_allowed", lambda _, *need: checked.append(need[-3:]))
    with pytest.raises(ApiError):
        handler.ask(init_producer_id.InitProducerIdRequest(transactional_id=None))
    assert checked == [(_O.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME)]


def test_coordinators_of_groups_and_transactions() -> None:
    handler = RecordingHandler(ApiKey.FIND_COORDINATOR, 4, (GROUP, "mine", _O.DESCRIBE))
    answer = find_coordinator.FindCoordinatorResponse(coordinators=[])
    request = find_coordinator.FindCoordinatorRequest(
        key_type=0, coordinator_keys=["mine", "other"]
    )
    [row] = handler.ask(request, answer).coordinators
    assert (row.key, row.error_code) == ("other", GROUP_REFUSED)
    request.key_type = 1
    answer.coordinators = []
    rows = handler.ask(request, answer).coordinators
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert [row.error_code for row in rows] == [refused, refused]
    handler.context.version = 3
    with pytest.raises(ApiError):
        handler.ask(find_coordinator.FindCoordinatorRequest(key="other", key_type=0))


def test_groups_are_narrowed_and_hidden() -> None:
    handler = RecordingHandler(ApiKey.DESCRIBE_GROUPS, 5, (GROUP, "mine", _O.READ))
    answer = describe_groups.DescribeGroupsResponse(
        groups=[describe_groups.DescribedGroup(group_id="mine", authorized_operations=328)]
    )
    request = describe_groups.DescribeGroupsRequest(groups=["mine", "other"])
    mine, other = handler.ask(request, answer).groups
    assert mine.authorized_operations == 1 << _O.READ | 1 << _O.DESCRIBE
    assert (other.error_code, other.authorized_operations) == (GROUP_REFUSED, -(2**31))
    handler = RecordingHandler(ApiKey.LIST_GROUPS, 4, (GROUP, "mine", _O.DESCRIBE))
    listed = list_groups.ListGroupsResponse(
        groups=[list_groups.ListedGroup(group_id=name) for name in ("mine", "other")]
    )
    found = handler.ask(list_groups.ListGroupsRequest(), listed)
    assert [group.group_id for group in found.groups] == ["mine"]


def test_a_consumer_group_with_a_hidden_topic_shows_no_members() -> None:
    handler = RecordingHandler(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        (GROUP, "mine", _O.DESCRIBE),
        (GROUP, "mixed", _O.DESCRIBE),
        (TOPIC, "seen", _O.DESCRIBE),
    )

    def group(group_id: str, *topics: str) -> consumer_group_describe.DescribedGroup:
        member = consumer_group_describe.Member(
            member_id="m",
            subscribed_topic_names=[*topics],
            assignment=consumer_group_describe.Assignment(),
            target_assignment=consumer_group_describe.Assignment(),
        )
        return consumer_group_describe.DescribedGroup(
            group_id=group_id,
            members=[member],
            authorized_operations=1 << _O.READ | 1 << _O.DESCRIBE,
        )

    answer = consumer_group_describe.ConsumerGroupDescribeResponse(
        groups=[group("mine", "seen"), group("mixed", "seen", "hidden")]
    )
    request = consumer_group_describe.ConsumerGroupDescribeRequest(
        group_ids=["mine", "mixed", "other"]
    )
    mine, mixed, other = handler.ask(request, answer).groups
    assert handler.requests[0].group_ids == ["mine", "mixed"]
    assert (mine.error_code, len(mine.members)) == (0, 1)
    assert mine.authorized_operations == 1 << _O.DESCRIBE
    assert (mixed.error_code, mixed.members) == (TOPIC_REFUSED, [])
    assert other.error_code == GROUP_REFUSED


@pytest.mark.parametrize(
    ("grant", "allowed"),
    [
        ((CLUSTER, CLUSTER_NAME, _O.DESCRIBE_CONFIGS), [4, 8, 16]),
        ((GROUP, "x", _O.DESCRIBE_CONFIGS), [32]),
        ((TOPIC, "x", _O.DESCRIBE_CONFIGS), [2]),
    ],
)
def test_configs_need_a_right_to_their_resource(grant: tuple[Any, ...], allowed: list[int]) -> None:
    handler = RecordingHandler(ApiKey.DESCRIBE_CONFIGS, 4, grant)
    rows = [
        describe_configs.DescribeConfigsResource(resource_type=kind, resource_name="x")
        for kind in (2, 4, 8, 16, 32)
    ]
    request = describe_configs.DescribeConfigsRequest(resources=rows)
    answer = handler.ask(request, describe_configs.DescribeConfigsResponse(results=[]))
    assert [row.resource_type for row in handler.requests[0].resources] == allowed
    refused = {row.resource_type: row.error_code for row in answer.results}
    of_cluster = dict.fromkeys((4, 8, 16), CLUSTER_REFUSED)
    expected = {2: TOPIC_REFUSED, **of_cluster, 32: GROUP_REFUSED}
    assert refused == {kind: code for kind, code in expected.items() if kind not in allowed}


def test_created_topics_keep_their_configs_to_themselves() -> None:
    handler = RecordingHandler(ApiKey.CREATE_TOPICS, 7, (TOPIC, "mine", _O.CREATE))
    request = create_topics.CreateTopicsRequest(
        topics=[create_topics.CreatableTopic(name=name) for name in ("mine", "other")]
    )
    answer = create_topics.CreateTopicsResponse(
        topics=[create_topics.CreatableTopicResult(name="mine", num_partitions=3, configs=[1])]
    )
    mine, other = handler.ask(request, answer).topics
    assert (mine.error_code, mine.topic_config_error_code) == (0, TOPIC_REFUSED)
    assert (mine.num_partitions, mine.replication_factor, mine.configs) == (-1, -1, [])
    assert (other.name, other.error_code) == ("other", TOPIC_REFUSED)


def test_metadata_by_id_is_authorized_by_the_name_that_the_answer_has() -> None:
    """The handler may look the id up later than the rule did: while the broker starts, or while
    another topic of the request is being created."""
    seen_id, hidden_id = Uuid(bytes(15) + b"s"), Uuid(bytes(15) + b"h")
    handler = RecordingHandler(
        ApiKey.METADATA, 12, (TOPIC, "seen", _O.DESCRIBE), (TOPIC, "alias", _O.DESCRIBE)
    )
    request = metadata.MetadataRequest(
        topics=[
            metadata.MetadataRequestTopic(name=None, topic_id=seen_id),
            metadata.MetadataRequestTopic(name=None, topic_id=hidden_id),
            metadata.MetadataRequestTopic(name="alias", topic_id=hidden_id),
        ]
    )
    seen, hidden = (
        metadata.MetadataResponseTopic(
            name=name, topic_id=topic_id, partitions=[metadata.MetadataResponsePartition()]
        )
        for name, topic_id in (("seen", seen_id), ("hidden", hidden_id))
    )
    pending = Pending()

    later = handler.ask(request, pending)
    pending.complete(metadata.MetadataResponse(topics=[seen, hidden, hidden]))
    response = run_now(later.response)
    assert response.topics[0] == seen
    for row in response.topics[1:]:
        assert (row.error_code, row.name, row.topic_id) == (TOPIC_REFUSED, None, hidden_id)
        assert row.partitions == []


def test_many_topics_are_authorized_in_slices() -> None:
    """40,000 rows that were refused in one go, each with a line in the log, took 0.7 s."""
    hidden_id, rows = Uuid(bytes(15) + b"h"), SLICE_UNITS // 10
    handler = RecordingHandler(ApiKey.METADATA, 12)
    handler.answer = metadata.MetadataResponse(
        topics=[metadata.MetadataResponseTopic(name="hidden", topic_id=hidden_id)] * rows
    )
    one = metadata.MetadataRequestTopic(name=None, topic_id=hidden_id)
    request = metadata.MetadataRequest(topics=[one], include_topic_authorized_operations=True)
    costs = list(handler.handle(handler.context, request))
    assert sum(costs) > 2 * SLICE_UNITS
    assert max(costs) < SLICE_UNITS


ROWS = SLICE_UNITS // CHECK_UNITS


@pytest.mark.parametrize(
    ("key", "request_", "answer"),
    [
        (
            ApiKey.DESCRIBE_GROUPS,
            describe_groups.DescribeGroupsRequest(groups=["g"]),
            describe_groups.DescribeGroupsResponse(
                groups=[describe_groups.DescribedGroup(authorized_operations=8)] * ROWS
            ),
        ),
        (
            ApiKey.LIST_GROUPS,
            list_groups.ListGroupsRequest(),
            list_groups.ListGroupsResponse(groups=[list_groups.ListedGroup(group_id="g")] * ROWS),
        ),
        (
            ApiKey.CREATE_TOPICS,
            create_topics.CreateTopicsRequest(topics=[create_topics.CreatableTopic(name="t")]),
            create_topics.CreateTopicsResponse(
                topics=[create_topics.CreatableTopicResult(name="t")] * ROWS
            ),
        ),
        (
            ApiKey.METADATA,
            metadata.MetadataRequest(topics=None),
            metadata.MetadataResponse(topics=[metadata.MetadataResponseTopic(name="t")] * ROWS),
        ),
        (
            ApiKey.LIST_TRANSACTIONS,
            list_transactions.ListTransactionsRequest(),
            list_transactions.ListTransactionsResponse(
                transaction_states=[list_transactions.TransactionState(transactional_id="id")]
                * ROWS
            ),
        ),
        (
            ApiKey.DESCRIBE_TRANSACTIONS,
            describe_transactions.DescribeTransactionsRequest(transactional_ids=["id"]),
            describe_transactions.DescribeTransactionsResponse(
                transaction_states=[
                    describe_transactions.TransactionState(
                        topics=[describe_transactions.TopicData(topic="t")] * ROWS
                    )
                ]
            ),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, ApiKey) else "",
)
def test_an_answer_of_many_rows_is_narrowed_in_slices(
    key: ApiKey, request_: Any, answer: Any
) -> None:
    """The operations of 27,000 unknown groups, found in one go, took 0.3 s."""
    handler = RecordingHandler(
        key,
        5,
        (GROUP, "g", _O.DESCRIBE),
        (TOPIC, "t", _O.CREATE),
        (TOPIC, "t", _O.DESCRIBE),
        (ResourceKind.TRANSACTIONAL_ID, "id", _O.DESCRIBE),
    )
    handler.answer = answer
    costs = list(handler.handle(handler.context, request_))
    assert sum(costs) >= SLICE_UNITS - CHECK_UNITS
    assert max(costs) < SLICE_UNITS
    # A later answer is narrowed in slices by the dispatcher, which encodes it.
    handler.answer = later = Pending()
    pending = run_now(handler.handle(handler.context, request_))
    later.complete(answer)
    costs = list(pending.response)
    assert sum(costs) >= SLICE_UNITS - CHECK_UNITS
    assert max(costs) < SLICE_UNITS


def topics(*names: str, error: int = 0) -> Any:
    rows = [
        metadata.MetadataResponseTopic(
            name=name, error_code=error, topic_authorized_operations=3576
        )
        for name in names
    ]
    return metadata.MetadataResponse(topics=rows)


def wanted(*names: str, **more: bool) -> Any:
    rows = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.MetadataRequest(topics=rows, **more)


def test_metadata_hides_refuses_and_narrows() -> None:
    handler = RecordingHandler(ApiKey.METADATA, 9, (TOPIC, "seen", _O.READ))
    everything = metadata.MetadataRequest(topics=None, include_topic_authorized_operations=True)
    [row] = handler.ask(everything, topics("seen", "hidden")).topics
    assert (row.name, row.topic_authorized_operations) == ("seen", 1 << 3 | 1 << 8)
    found = handler.ask(wanted("seen", "hidden"), topics("seen")).topics
    assert [(row.name, row.error_code) for row in found] == [
        ("seen", 0),
        ("hidden", TOPIC_REFUSED),
    ]
    handler.context.version = 0
    found = handler.ask(wanted("hidden"), topics("seen", "hidden")).topics
    assert [(row.name, row.error_code) for row in found] == [("hidden", TOPIC_REFUSED)]


def test_a_topic_that_may_not_be_made_is_refused_not_unknown() -> None:
    handler = RecordingHandler(ApiKey.METADATA, 9, (TOPIC, "new", _O.DESCRIBE))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def code(**more: bool) -> int:
        [row] = handler.ask(wanted("new", **more), topics("new", error=unknown)).topics
        return int(row.error_code)

    assert code(allow_auto_topic_creation=True) == TOPIC_REFUSED
    assert code(allow_auto_topic_creation=False) == unknown
    handler = RecordingHandler(
        ApiKey.METADATA, 9, (TOPIC, "new", _O.DESCRIBE), auto_create_topics=False
    )
    assert code(allow_auto_topic_creation=True) == unknown


def test_operations_with_the_cluster_are_for_who_may_describe_it() -> None:
    request = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    for operation, bits in ((_O.CREATE, 0), (_O.ALTER, 1 << _O.ALTER | 1 << _O.DESCRIBE)):
        handler = RecordingHandler(
            ApiKey.DESCRIBE_CLUSTER, 1, (CLUSTER, "kafka-cluster", operation)
        )
        response = handler.ask(request, describe_cluster.DescribeClusterResponse())
        assert response.cluster_authorized_operations == bits
