"""A regression guard: how many calls a request costs, at most.

Seconds say little on a busy machine; the number of calls is the same on every run. A bound is what
was measured (CPython 3.11; later ones make fewer) and a tenth more. Whoever exceeds one has put
work on the way of every request: take it off again, or say in docs/decisions why it is worth it and
raise the bound.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.cores.call_counts import assert_at_most, calls
from tests.harness.cores.hot_path import FETCH, PRODUCE, Client, fetch, produce
from tests.harness.cores.server_parts import Parts

COUNT = 50
FAST_PRODUCE_CALLS = 81
GENERAL_PRODUCE_CALLS = 222
REPLICATED_PRODUCE_CALLS = 143
FETCH_CALLS = 174
QUIET_PARTITION_CALLS = 28
PARKED_PARTITION_CALLS = 36
PARKED_FETCH_CALLS = 394


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    parts = Parts(tmp_path)
    parts.lead()
    return parts


@pytest.fixture
def client(parts: Parts) -> Client:
    return Client(parts)


def test_a_produce_on_the_fast_path(parts: Parts, client: Client) -> None:
    client.sends(PRODUCE, produce("t"), produce("t"))()
    assert_at_most(FAST_PRODUCE_CALLS, client.sends(PRODUCE, *[produce("t")] * COUNT), COUNT)
    assert parts.replicas.partitions["t"][0].log.log_end_offset == COUNT + 2


def test_a_produce_on_the_general_path(parts: Parts, client: Client) -> None:
    parts.lead("u")
    client.sends(PRODUCE, produce("t", "u"))()
    assert_at_most(
        GENERAL_PRODUCE_CALLS, client.sends(PRODUCE, *[produce("t", "u")] * COUNT), COUNT
    )
    assert parts.replicas.partitions["u"][0].log.log_end_offset == COUNT + 1


def test_a_produce_that_waits_for_its_follower(parts: Parts, client: Client) -> None:
    partition = parts.lead(isr=(1, 2), leader_epoch=1, partition_epoch=1)
    client.sends(PRODUCE, produce("t"), produce("t"))()
    parts.fetch_as_follower(partition, 2)
    send = client.sends(PRODUCE, *[produce("t")] * COUNT)
    client.transport.sent = b""

    def replicate() -> None:
        send()
        parts.fetch_as_follower(partition, COUNT + 2)

    assert_at_most(REPLICATED_PRODUCE_CALLS, replicate, COUNT)
    assert len(parts.replicas.produce_purgatory) == 0
    assert client.transport.sent


def test_a_fetch_of_one_batch(client: Client) -> None:
    client.sends(PRODUCE, produce("t"))()
    [topic] = client.fetches(fetch()).responses
    assert bytes(topic.partitions[0].records) != b""
    assert_at_most(FETCH_CALLS, client.sends(FETCH, *[fetch()] * COUNT), COUNT)


def test_a_partition_of_a_session_with_nothing_new(parts: Parts, client: Client) -> None:
    for index in range(COUNT):
        parts.lead(index=index)
    session_id = client.fetches(fetch(COUNT, session=(0, 0))).session_id
    assert session_id > 0
    client.fetches(fetch(0, session=(session_id, 1)))
    quiet = client.sends(FETCH, fetch(0, session=(session_id, 2)))
    assert_at_most(QUIET_PARTITION_CALLS, quiet, COUNT)


def test_followers_of_many_partitions_do_not_wake_each_other(parts: Parts) -> None:
    """Each partition that one fetches costs the same, however many the other one waits for."""
    for index in range(COUNT):
        parts.lead(index=index, isr=(1, 2, 3), leader_epoch=1, partition_epoch=1)
    for follower in (2, 3):
        client = Client(parts)
        first = fetch(COUNT, session=(0, 0), replica_id=follower)
        session_id = client.fetches(first).session_id
        wait = {"max_wait_ms": 500, "replica_id": follower}
        waits = client.sends(FETCH, fetch(0, session=(session_id, 1), **wait))
        assert_at_most(PARKED_PARTITION_CALLS, waits, COUNT)
    assert len(parts.replicas.fetch_purgatory) == 2


def test_an_append_looks_at_its_partition_only(parts: Parts) -> None:
    for index in range(COUNT):
        parts.lead(index=index, isr=(1, 2), leader_epoch=1, partition_epoch=1)
    client, producer = Client(parts), Client(parts)
    session_id = client.fetches(fetch(COUNT, session=(0, 0))).session_id
    client.sends(FETCH, fetch(0, session=(session_id, 1), max_wait_ms=500))()
    producer.sends(PRODUCE, produce("t"), produce("t"))()
    # What is not committed is no reason to look at the 49 others that the consumer waits for.
    uncommitted = producer.sends(PRODUCE, *[produce("t", acks=1)] * COUNT)
    assert_at_most(FAST_PRODUCE_CALLS + 15, uncommitted, COUNT)
    assert len(parts.replicas.fetch_purgatory) == 1


def test_a_fetch_that_waits_for_a_produce(parts: Parts, client: Client) -> None:
    producer = Client(parts)
    producer.sends(PRODUCE, produce("t"), produce("t"))()
    turns = [
        (client.sends(FETCH, fetch(offset=2 + n, max_wait_ms=500)), producer.sends(PRODUCE, one))
        for n, one in enumerate([produce("t")] * COUNT)
    ]

    def wait_and_wake() -> None:
        for wait, wake in turns:
            wait()
            assert len(parts.replicas.fetch_purgatory) == 1
            wake()
            assert len(parts.replicas.fetch_purgatory) == 0

    assert_at_most(PARKED_FETCH_CALLS, wait_and_wake, COUNT)
    assert client.transport.sent


def test_counting_sees_the_work() -> None:
    """Twice the work is twice the calls: the bounds above are of something."""
    once, twice = calls(lambda: abs(-1)), calls(lambda: [abs(-1), abs(-2)])
    assert (once["abs"], twice["abs"]) == (1, 2)
