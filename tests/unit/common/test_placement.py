"""Kafka's placement algorithm: its documented examples and its promises."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.placement import BrokerPlace, alternate_racks, assign_replicas

FIVE = [BrokerPlace(i) for i in range(5)]
RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
SIX = [BrokerPlace(i, RACKS[i]) for i in range(6)]


def test_the_example_of_admin_utils_without_racks() -> None:
    """Ten partitions of three replicas on brokers 0-4, as the class documents it."""
    assert assign_replicas(FIVE, 10, 3, start_index=0, shift=0) == {
        0: (0, 1, 2),
        1: (1, 2, 3),
        2: (2, 3, 4),
        3: (3, 4, 0),
        4: (4, 0, 1),
        5: (0, 2, 3),
        6: (1, 3, 4),
        7: (2, 4, 0),
        8: (3, 0, 1),
        9: (4, 1, 2),
    }


def test_the_example_of_admin_utils_with_racks() -> None:
    assert [broker.broker_id for broker in alternate_racks(SIX)] == [0, 3, 1, 5, 4, 2]
    assert assign_replicas(SIX, 7, 3, start_index=0, shift=0) == {
        0: (0, 3, 1),
        1: (3, 1, 5),
        2: (1, 5, 4),
        3: (5, 4, 2),
        4: (4, 2, 0),
        5: (2, 0, 3),
        6: (0, 4, 2),
    }


def test_added_partitions_go_on_where_the_old_ones_ended() -> None:
    whole = assign_replicas(FIVE, 4, 2, start_index=1, shift=1)
    added = assign_replicas(FIVE, 2, 2, start_index=1, shift=1, start_partition=2)
    assert added == {2: whole[2], 3: whole[3]}


@given(
    brokers=st.integers(1, 9),
    partitions=st.integers(1, 60),
    data=st.data(),
    racks=st.integers(0, 4),
)
def test_replicas_are_spread(
    brokers: int, partitions: int, data: st.DataObject, racks: int
) -> None:
    factor = data.draw(st.integers(1, brokers))
    start, shift = (data.draw(st.integers(0, brokers - 1)) for _ in range(2))
    places = [BrokerPlace(i, f"r{i % racks}" if racks else None) for i in range(brokers)]
    found = assign_replicas(places, partitions, factor, start_index=start, shift=shift)
    assert list(found) == list(range(partitions))
    leaders = Counter(replicas[0] for replicas in found.values())
    assert max(leaders.values()) - min(leaders.get(b, 0) for b in range(brokers)) <= 1
    for replicas in found.values():
        assert len(set(replicas)) == factor
        used = {places[replica].rack for replica in replicas}
        assert len(used) == min(factor, len({place.rack for place in places}))


@pytest.mark.parametrize(
    ("brokers", "partitions", "factor", "code", "message"),
    [
        (FIVE, 0, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (
            FIVE,
            1,
            0,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0.",
        ),
        (
            FIVE,
            1,
            6,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor: 6 larger than available brokers: 5.",
        ),
        (
            [*FIVE, BrokerPlace(9, "r")],
            1,
            1,
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        ),
    ],
)
def test_refusals(
    brokers: list[BrokerPlace], partitions: int, factor: int, code: ErrorCode, message: str
) -> None:
    with pytest.raises(ApiError) as refused:
        assign_replicas(brokers, partitions, factor, start_index=0, shift=0)
    assert (refused.value.code, refused.value.message) == (code, message)
