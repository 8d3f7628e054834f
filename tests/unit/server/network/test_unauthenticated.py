"""Connections that have not authenticated are bounded by time and by number."""

from __future__ import annotations

import pytest

from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network.unauthenticated import Unauthenticated
from tests.harness.cores.paused_loops import fake_timers
from tests.harness.cores.server_parts import FakeTimers


class Login:
    """One that may be closed."""

    def __init__(self, client_host: str) -> None:
        self.client_host = client_host
        self.closed = False

    def abort(self) -> None:
        self.closed = True


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> FakeTimers:
    return fake_timers(monkeypatch)


def bounded(most: int) -> Unauthenticated:
    return Unauthenticated(KafkaConfig({"kafkapy.max.unauthenticated.connections": str(most)}))


def test_who_is_not_done_in_time_is_closed(timers: FakeTimers) -> None:
    all_of_them = bounded(10)
    done, slow = Login("a"), Login("a")
    for each in (done, slow):
        all_of_them.begin(each)
    assert timers.delays_s == [30, 30]
    all_of_them.end(done)
    all_of_them.end(done)
    assert (timers.delays_s, len(all_of_them)) == ([30], 1)
    timers.fire()
    assert (done.closed, slow.closed, len(all_of_them)) == (False, True, 0)


def test_the_oldest_of_the_address_that_has_most_makes_room(
    timers: FakeTimers, caplog: pytest.LogCaptureFixture
) -> None:
    all_of_them = bounded(4)
    victim = Login("a")
    crowd = [Login("b") for _ in range(5)]
    for each in (victim, *crowd, Login("a")):
        all_of_them.begin(each)
    assert not victim.closed
    assert [each.closed for each in crowd] == [True, True, True, False, False]
    assert len(all_of_them) == 4
    [record] = caplog.records  # said once
    assert "kafkapy.max.unauthenticated.connections=4" in record.getMessage()


def test_of_addresses_with_as_many_the_first_makes_room(timers: FakeTimers) -> None:
    all_of_them = bounded(2)
    logins = [Login(host) for host in "abc"]
    for each in logins:
        all_of_them.begin(each)
    assert [each.closed for each in logins] == [True, False, False]
