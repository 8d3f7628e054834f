"""batch_producer: whatever fails, each record once and in order, or an error."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.client.batch_producer import BatchProducer, DeliveryError, RecordTooLarge
from kafkapy.client.cluster import Cluster
from kafkapy.client.producer_settings import producer_settings
from kafkapy.client.transaction import Transaction
from kafkapy.client.transport import network_error
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kafkapy.record.batch_header import NO_PRODUCER_ID, read_header
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.scripted.scripted_broker import metadata
from tests.harness.scripted.scripted_leaders import (
    LOST_ANSWER,
    LOST_REQUEST,
    MOVES,
    Fault,
    ScriptedLeaders,
)
from tests.harness.scripted.stepped_time import SteppedTime

QUICK = {"max.block.ms": "0"}


def producer_on(brokers: ScriptedLeaders, **properties: str) -> BatchProducer:
    cluster = Cluster("b:9001", QUICK | properties, connector=brokers.scripted.connect)
    return BatchProducer(cluster, producer_settings(QUICK | properties))


def batch_of(*values: str) -> bytearray:
    return bytearray(build_batch([RecordData(None, value.encode()) for value in values]))


def write(brokers: ScriptedLeaders, count: int, **properties: str) -> list[bytes]:
    """Batches of two records, round the partitions of `t`; the values that the log must have."""
    producer = producer_on(brokers, **properties)
    partitions = len(producer.leaders("t"))
    expected: list[list[bytes]] = [[] for _ in range(partitions)]
    for i in range(count):
        pair = f"{i}a", f"{i}b"
        expected[i % partitions] += [value.encode() for value in pair]
        producer.send(TopicPartition("t", i % partitions), batch_of(*pair))
    producer.flush()
    return [value for values in expected for value in values]


FAULTS = st.sampled_from(
    [
        *(None, LOST_REQUEST, LOST_ANSWER, MOVES),
        *(ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.CORRUPT_MESSAGE),
        *(ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
)


@given(faults=st.lists(FAULTS, max_size=30), partitions=st.integers(1, 5), small=st.booleans())
@settings(max_examples=150, deadline=None)
def test_each_record_once_and_in_order_whatever_fails(
    faults: list[Fault], partitions: int, small: bool
) -> None:
    too_small_for_two = 75 if small else 1 << 20
    brokers = ScriptedLeaders({"t": partitions}, (1, 2, 3), faults, too_small_for_two)
    expected = write(brokers, 12)
    assert brokers.values() == expected
    assert brokers.identities == 1


def test_a_batch_is_sent_before_the_answer_to_another_leaders_is_read() -> None:
    brokers = ScriptedLeaders({"t": 2}, (1, 2))
    producer = producer_on(brokers)
    for partition in (0, 1, 0, 1):
        producer.send(TopicPartition("t", partition), batch_of("v"))
    # The first to each leader waits for its connection; the second is there when `send` returns.
    assert len(brokers.values()) >= 3
    producer.flush()
    assert len(brokers.values()) == 4


def test_batches_that_are_put_go_in_one_request_up_to_its_size() -> None:
    brokers = ScriptedLeaders({"t": 4})
    size = len(batch_of("v"))
    producer = producer_on(brokers, **{"max.request.size": str(3 * size)})
    for partition in range(4):
        producer.put(TopicPartition("t", partition), batch_of("v"))
    producer.flush()
    requests = brokers.scripted.requests_of(ApiKey.PRODUCE)
    assert [len(request.topic_data[0].partition_data) for request in requests] == [3, 1]


def test_what_the_log_forgot_is_written_by_another_producer_id() -> None:
    brokers = ScriptedLeaders({"t": 2})
    producer = producer_on(brokers)
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    producer.send(first, batch_of("a"))
    producer.send(second, batch_of("b"))
    producer.flush()
    brokers.drop_producer_state()
    for value in ("c", "d"):
        producer.send(first, batch_of(value))
        producer.send(second, batch_of(value.upper()))
    producer.flush()
    assert brokers.values() == [b"a", b"c", b"d", b"b", b"C", b"D"]
    assert brokers.identities == 2


def test_a_batch_that_may_be_written_keeps_its_producer_id() -> None:
    """Another partition's log has lost its end, and the answer for this one is lost."""
    brokers = ScriptedLeaders({"t": 2}, (1, 2))
    producer = producer_on(brokers)
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    for value in ("a", "b"):
        producer.send(first, batch_of(value))
        producer.send(second, batch_of(value.upper()))
    producer.flush()
    brokers.drop_producer_state(first)
    brokers.faults = [None, LOST_ANSWER]
    for value in ("c", "d"):
        producer.put(first, batch_of(value))
        producer.put(second, batch_of(value.upper()))
    producer.flush()
    assert brokers.values() == [b"a", b"b", b"c", b"d", b"A", b"B", b"C", b"D"]
    assert brokers.identities == 2
    assert not brokers.faults


def test_a_broker_that_has_just_started_may_know_of_no_topic() -> None:
    brokers = ScriptedLeaders({"t": 1}, (1, 2), [None, MOVES])
    producer = producer_on(brokers)
    producer.send(TopicPartition("t", 0), batch_of("a"))
    brokers.empty_metadata_answers = 5
    producer.send(TopicPartition("t", 0), batch_of("b"))
    producer.flush()
    assert (brokers.values(), brokers.empty_metadata_answers) == ([b"a", b"b"], 0)


def test_a_topic_that_is_gone_is_told_when_the_batch_is_due() -> None:
    brokers = ScriptedLeaders({"t": 1}, (1, 2), [None, MOVES])
    times = {"delivery.timeout.ms": "300", "request.timeout.ms": "200", "linger.ms": "0"}
    producer = producer_on(brokers, **times)
    producer.send(TopicPartition("t", 0), batch_of("a"))
    brokers.empty_metadata_answers = 1 << 30
    producer.put(TopicPartition("t", 0), batch_of("b"))
    with pytest.raises(DeliveryError, match="t-0: Partition t-0 does not exist"):
        producer.flush()
    assert brokers.values() == [b"a"]


def test_a_batch_survives_an_outage_that_is_shorter_than_its_delivery_timeout() -> None:
    """Brokers that recover their logs are away for longer than the API timeout of 60 s."""
    brokers = ScriptedLeaders({"t": 1}, faults=[None, LOST_REQUEST])
    refusals = [0]  # connections to refuse, 100 ms apart

    def connect(host: str, port: int, *rest: Any) -> Any:
        if refusals[0] == 0:
            return brokers.scripted.connect(host, port, *rest)
        refusals[0] -= 1
        raise network_error(host, port, ConnectionRefusedError("nobody listens"))

    producer = BatchProducer(Cluster("b:9001", connector=connect), producer_settings({}))
    producer.send(TopicPartition("t", 0), batch_of("a"))
    answer = brokers.scripted.script[ApiKey.METADATA]
    brokers.scripted.script[ApiKey.METADATA] = [ConnectionResetError(104, "reset"), answer]
    refusals[0] = 900
    producer.send(TopicPartition("t", 0), batch_of("b"))
    producer.flush()
    assert brokers.values() == [b"a", b"b"]
    assert refusals == [0]


def test_the_search_for_a_leader_ends_with_the_delivery_timeout(stepped_time: SteppedTime) -> None:
    brokers = ScriptedLeaders({"t": 1}, (1, -1), [None, MOVES])
    producer = producer_on(brokers, **{"delivery.timeout.ms": "5000"})
    producer.send(TopicPartition("t", 0), batch_of("a"))
    begin_s = stepped_time.monotonic()
    producer.put(TopicPartition("t", 0), batch_of("b"))
    with pytest.raises(DeliveryError, match="t-0: Partition t-0 has no leader"):
        producer.flush()
    assert stepped_time.monotonic() - begin_s < 6  # the API timeout is 60 s


@pytest.mark.parametrize(
    "hung", [ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE, ApiKey.ADD_PARTITIONS_TO_TXN]
)
def test_no_request_of_a_batch_outlives_its_delivery_timeout(
    hung: ApiKey, stepped_time: SteppedTime
) -> None:
    def no_answer(request: Any, port: int) -> Exception:
        stepped_time.sleep(brokers.scripted.connections[-1].limit_s or 0)
        return TimeoutError()

    brokers = ScriptedLeaders({"t": 1})
    coordinator = Coordinator(key="x", node_id=1, host="b", port=9001)
    found = FindCoordinatorResponse(coordinators=[coordinator])
    brokers.scripted.script[ApiKey.FIND_COORDINATOR] = found
    times = QUICK | {"delivery.timeout.ms": "5000"}
    with Cluster("b:9001", times, connector=brokers.scripted.connect) as cluster:
        is_in_transaction = hung is ApiKey.ADD_PARTITIONS_TO_TXN
        transaction = Transaction(cluster, "x", 60_000) if is_in_transaction else None
        producer = BatchProducer(cluster, producer_settings(times), transaction)
        brokers.scripted.script[hung] = no_answer
        begin_s = stepped_time.monotonic()
        producer.put(TopicPartition("t", 0), batch_of("a"))
        with pytest.raises(DeliveryError, match=f"did not answer {hung.name}"):
            producer.flush()
    assert stepped_time.monotonic() - begin_s < 8  # the request timeout is 30 s


def test_a_batch_survives_a_metadata_request_without_an_answer() -> None:
    """The broker that answers for metadata is frozen. Another one may answer."""
    brokers = ScriptedLeaders({"t": 1}, (1, 2), [None, MOVES])
    producer = producer_on(brokers)
    producer.send(TopicPartition("t", 0), batch_of("a"))
    answer = brokers.scripted.script[ApiKey.METADATA]
    brokers.scripted.script[ApiKey.METADATA] = [TimeoutError(), answer]
    producer.send(TopicPartition("t", 0), batch_of("b"))
    producer.flush()
    assert brokers.values() == [b"a", b"b"]


def test_a_topic_is_waited_for_while_the_brokers_are_away() -> None:
    """The cluster is known from another topic, and max.block.ms is above the API timeout."""
    brokers = ScriptedLeaders({"t": 1, "u": 1})
    answer = brokers.scripted.script[ApiKey.METADATA]
    lost = [ConnectionResetError(104, "reset")] * 700
    brokers.scripted.script[ApiKey.METADATA] = [answer, TimeoutError(), *lost, answer]
    producer = producer_on(brokers, **{"max.block.ms": "120000"})
    assert producer.leaders("t") == [1]
    assert producer.leaders("u") == [1]


def test_a_topic_is_waited_for_until_max_block_ms_and_not_the_api_timeout(
    stepped_time: SteppedTime,
) -> None:
    brokers = ScriptedLeaders({"t": 1, "u": 1})
    producer = producer_on(brokers, **{"max.block.ms": "5000"})
    assert producer.leaders("t") == [1]
    brokers.scripted.script[ApiKey.METADATA] = ConnectionResetError(104, "reset")
    begin_s = stepped_time.monotonic()
    with pytest.raises(DeliveryError, match=r"No rows can be written: .* was lost: reset"):
        producer.leaders("u")
    assert stepped_time.monotonic() - begin_s < 6


@pytest.mark.parametrize(
    "code",
    [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_RECORD, ErrorCode.PRODUCER_FENCED],
)
def test_a_refusal_names_the_partition_and_the_code(code: ErrorCode) -> None:
    with pytest.raises(DeliveryError, match=f"t-0: {code.name}"):
        write(ScriptedLeaders({"t": 1}, faults=[None, code]), 3)


def test_one_record_that_is_too_large_is_refused() -> None:
    with pytest.raises(RecordTooLarge, match="t-0: MESSAGE_TOO_LARGE"):
        write(ScriptedLeaders({"t": 1}, max_bytes=60), 1)


def test_tries_end_with_retries_and_with_the_delivery_timeout() -> None:
    refusals = [ErrorCode.NOT_ENOUGH_REPLICAS] * 3
    for properties, tries in (({"retries": "2"}, 3), ({"delivery.timeout.ms": "0"}, 1)):
        brokers = ScriptedLeaders({"t": 1}, faults=list(refusals))
        with pytest.raises(DeliveryError, match=rf"NOT_ENOUGH_REPLICAS.* after {tries} attempts"):
            write(brokers, 1, **properties)
        assert len(brokers.scripted.requests_of(ApiKey.PRODUCE)) == tries


def test_without_idempotence_no_producer_id_is_asked_for() -> None:
    brokers = ScriptedLeaders({"t": 1}, faults=[LOST_ANSWER])
    write(brokers, 1, acks="1")
    (sent, again) = brokers.scripted.requests_of(ApiKey.PRODUCE)
    assert (sent.acks, brokers.identities) == (1, 0)
    batch = bytes(again.topic_data[0].partition_data[0].records)
    assert read_header(batch).producer_id == NO_PRODUCER_ID
    assert brokers.values() == [b"0a", b"0b"] * 2  # at least once: that is what it gives up


def test_a_topic_may_be_created_and_is_waited_for() -> None:
    brokers = ScriptedLeaders({"t": 3})
    missing = metadata({}, brokers={1: 9001})
    brokers.scripted.script[ApiKey.METADATA] = [
        missing,
        missing,
        brokers.scripted.script[ApiKey.METADATA],
    ]
    assert producer_on(brokers, **{"max.block.ms": "60000"}).leaders("t") == [1, 1, 1]
    assert all(r.allow_auto_topic_creation for r in brokers.scripted.requests_of(ApiKey.METADATA))


def test_a_topic_that_never_comes_and_a_cluster_that_is_away() -> None:
    with pytest.raises(DeliveryError, match="Topic t not present in metadata after 0 ms"):
        producer_on(ScriptedLeaders({})).leaders("t")
    brokers = ScriptedLeaders({"t": 1})
    brokers.scripted.refuse = {9001}
    with pytest.raises(DeliveryError, match=r"No rows can be written: .*Connection refused"):
        producer_on(brokers).leaders("t")


@pytest.mark.parametrize(
    "error", [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
)
def test_a_topic_that_is_refused_is_not_waited_for(error: ErrorCode) -> None:
    """The message had the time limit, as if it had been waited for."""
    brokers = ScriptedLeaders({})
    refused = metadata({}, brokers={1: 9001}, errors={"t": error})
    brokers.scripted.script[ApiKey.METADATA] = [refused]
    with pytest.raises(DeliveryError, match=f"^Topic t: {error.name}$"):
        producer_on(brokers, **{"max.block.ms": "60000"}).leaders("t")


@pytest.mark.parametrize(
    ("reason", "attempts"),
    [
        (ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, "bad password"), 1),
        (ssl.SSLCertVerificationError("self-signed certificate"), 1),
        (ssl.SSLEOFError("the broker was killed"), 2),
        (ConnectionRefusedError("nobody listens"), 2),
    ],
)
def test_only_connections_that_may_succeed_later_are_tried_again(
    reason: ApiError | OSError, attempts: int
) -> None:
    """A wrong password is reported at once, not after max.block.ms."""
    brokers = ScriptedLeaders({"t": 1})
    made: list[int] = []

    def connect(host: str, port: int, *rest: Any) -> Any:
        made.append(port)
        if len(made) < attempts or attempts == 1:
            if isinstance(reason, OSError):
                raise network_error(host, port, reason) from reason
            raise reason
        return brokers.scripted.connect(host, port, *rest)

    properties = QUICK | {"max.block.ms": "60000"}
    producer = BatchProducer(
        Cluster("b:9001", properties, connector=connect), producer_settings(properties)
    )
    if attempts == 1:
        with pytest.raises(DeliveryError, match="No rows can be written"):
            producer.leaders("t")
    else:
        assert producer.leaders("t") == [1]
    assert len(made) == attempts


def test_what_is_abandoned_is_not_sent_but_what_was_sent_is_waited_for() -> None:
    brokers = ScriptedLeaders({"t": 1})
    producer = producer_on(brokers)
    where = TopicPartition("t", 0)
    producer.send(where, batch_of("a"))
    producer.send(where, batch_of("b"))
    producer.put(where, batch_of("c"))
    producer.abandon()
    producer.flush()
    assert brokers.values() == [b"a", b"b"]
