"""Who connects too fast waits for his turn, one after the other at each listener."""

from __future__ import annotations

import pytest

from kafkapy.server.accept_queues import AcceptQueues
from kafkapy.server.creation_rates import CreationRates
from kafkapy.server.kafka_config import KafkaConfig
from tests.support.paused_loops import fake_timers
from tests.support.server_parts import FakeTimers

SLOW = {"listener.name.a.max.connection.creation.rate": "1"}
TWO = {
    "listeners": "A://127.0.0.1:1,B://127.0.0.1:2",
    "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
    "inter.broker.listener.name": "A",
}


class Waiting:
    """Somebody at a listener."""

    def __init__(self, listener: str) -> None:
        self.listener = listener
        self.has_begun = False

    def begin(self) -> None:
        assert not self.has_begun
        self.has_begun = True


class Door:
    """The queues of two listeners, by a clock of the test."""

    def __init__(self) -> None:
        self.now_ms = 100_000
        self.rates = CreationRates(KafkaConfig({**TWO, **SLOW}))
        self.queues = AcceptQueues(self.rates, lambda: self.now_ms)

    def come(self, listener: str, count: int) -> list[Waiting]:
        """Those of `count` who may not begin at once."""
        those = [Waiting(listener) for _ in range(count)]
        return [each for each in those if not self.queues.may_begin(each)]


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> FakeTimers:
    return fake_timers(monkeypatch)


def test_one_after_the_other_and_each_counts_when_it_is_its_turn(timers: FakeTimers) -> None:
    door = Door()
    late = door.come("A", 13)
    assert len(late) == 3
    assert door.rates.listeners["A"].rate.rate(door.now_ms) == 1.1  # two do not count yet
    for begun in (1, 2, 3):
        assert timers.delays_s == [1]
        door.now_ms += 1000
        timers.fire()
        assert [each.has_begun for each in late] == [True] * begun + [False] * (3 - begun)
    assert timers.delays_s == []


def test_other_listeners_go_on(timers: FakeTimers) -> None:
    door = Door()
    assert door.come("A", 11)
    assert door.come("B", 50) == []


def test_when_it_is_quiet_again_nobody_waits(timers: FakeTimers) -> None:
    door = Door()
    door.come("A", 12)
    door.now_ms += 60_000
    timers.fire()  # one pause was enough: the rate is low again
    assert timers.delays_s == []
    assert door.come("A", 5) == []
