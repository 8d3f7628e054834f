"""Which answers count as those of a broker that no longer leads."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.faults.former_leaders import Leaderships, Refusal, refusal, watched

OF_A_PRODUCER = (
    "Broker: Broker received an out of order sequence number: ProduceRequest for chaos [2] with 2"
    " message(s) failed due to sequence desynchronization with broker 1 (PID{Id:0,Epoch:0}, base"
    " seq 23018, last partition error _TRANSPORT (actions Refresh, base msgid 23019, 303ms ago)"
)
OF_A_CONSUMER = "fetch failed due to requested offset not available: Offset out of range (broker 3)"


def leaderships() -> Leaderships:
    """Broker 1 led partition 2 from 100 s, broker 2 from 200 s, broker 1 again from 300 s."""
    found = Leaderships()
    for at, leader in ((100.0, 1), (200.0, 2), (300.0, 1)):
        found.note(2, at, leader)
    return found


def test_librdkafka_names_partition_and_broker() -> None:
    assert refusal(OF_A_PRODUCER)[:2] == (2, 1)
    assert refusal(OF_A_CONSUMER, 0)[:2] == (0, 3)
    assert refusal("no words of either")[:2] == (-1, -1)


@pytest.mark.parametrize(
    ("broker_id", "at", "is_former"),
    [
        (1, 250.0, True),  # broker 2 leads
        (1, 150.0, False),  # it leads itself
        (1, 200.0, True),  # from that moment on
        (1, 300.0, False),  # it leads again
        (2, 301.0, True),
        (2, 150.0, False),  # it has not led yet
        (3, 250.0, False),  # it never led
        (1, 50.0, False),  # nothing is known of then
        (-1, 250.0, False),
    ],
)
def test_a_former_leader_led_and_no_longer_leads(
    broker_id: int, at: float, is_former: bool
) -> None:
    assert leaderships().was_former(Refusal(2, broker_id, at, "")) is is_former


def test_another_partition_has_other_leaders() -> None:
    assert not leaderships().was_former(Refusal(1, 1, 250.0, ""))


def test_only_answers_of_former_leaders_are_allowed() -> None:
    found = {"lost-position": ["former", "leader"], "duplicate": ["value 1"]}
    allowed: dict[str, list[str]] = {}
    answers = [Refusal(2, 1, 250.0, "former"), Refusal(2, 2, 250.0, "leader")]
    leaderships().allow(answers, found, allowed)
    assert found == {"lost-position": ["leader"], "duplicate": ["value 1"]}
    assert allowed == {"lost-position, by a former leader": ["former"]}


class WatchedCluster:
    """Its ZooKeeper client calls watches as kazoo does: with the event, None at first."""

    def __init__(self) -> None:
        self.watches: list[Callable[..., object]] = []

    @contextmanager
    def client(self) -> Iterator[Any]:
        yield SimpleNamespace(DataWatch=lambda path, watch: self.watches.append(watch))


def test_the_leaders_of_each_partition_are_watched() -> None:
    cluster = WatchedCluster()
    with watched(cast(FaultCluster, cluster), "chaos", 2) as leaders:
        for at, leader, event in ((100, 1, None), (200, 2, object())):
            data, stat = json.dumps({"leader": leader}).encode(), SimpleNamespace(mtime=at * 1000)
            cluster.watches[1](data, stat, event)
        cluster.watches[0](None, None, None)
    assert leaders.was_former(Refusal(1, 1, 250.0, ""))
    assert not leaders.was_former(Refusal(0, 1, 250.0, ""))
