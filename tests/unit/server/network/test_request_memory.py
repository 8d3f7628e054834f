"""One pool of memory for requests: it bounds what clients can have the broker hold."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network.request_memory import Lease, RequestMemory


class Reader:
    """A connection whose next request has this size; `reads` is whether it is read."""

    def __init__(self, memory: RequestMemory) -> None:
        self.size = 0
        self.reads = True
        self.lease = Lease(memory, self.settle)

    def settle(self) -> None:
        self.reads = self.lease.settle(self.size, 0)

    def awaits(self, size: int) -> bool:
        self.size = size
        self.settle()
        return self.reads


def test_who_comes_when_all_is_taken_waits_in_turn() -> None:
    memory = RequestMemory(100)
    first, second, third, fourth = (Reader(memory) for _ in range(4))
    assert first.awaits(60)
    assert second.awaits(100)  # the last to take may take more
    assert not third.awaits(10)
    assert not fourth.awaits(1)
    first.awaits(0)
    assert (third.reads, fourth.reads) == (False, False)
    second.awaits(0)
    assert (third.reads, fourth.reads) == (True, True)
    for each in (third, fourth):
        each.lease.close()
    assert memory.available_bytes == 100


def test_who_goes_gives_back_and_waits_no_more() -> None:
    memory = RequestMemory(100)
    gone, waiting, heir = (Reader(memory) for _ in range(3))
    assert gone.awaits(100)
    assert not waiting.awaits(50)
    assert not heir.awaits(70)
    waiting.lease.close()
    gone.lease.close()
    assert (waiting.reads, heir.reads) == (False, True)
    assert memory.available_bytes == 30


def test_requests_that_wait_for_others_are_in_the_pool() -> None:
    memory = RequestMemory(100)
    busy, other = Lease(memory, lambda: None), Reader(memory)
    assert busy.settle(0, 150)
    assert memory.available_bytes == -50
    assert not other.awaits(10)
    assert busy.settle(0, 0)
    assert other.reads


def test_the_next_request_of_a_connection_takes_its_turn_behind_who_waits() -> None:
    memory = RequestMemory(100)
    busy, patient = Reader(memory), Reader(memory)
    assert busy.awaits(100)
    assert not patient.awaits(100)
    assert not busy.awaits(90)
    assert patient.reads
    patient.awaits(0)
    assert busy.reads


def test_a_pool_that_could_not_hold_one_request_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"queued\.max\.request\.bytes=5 must be larger or equal"):
        KafkaConfig({"queued.max.request.bytes": "5"})
    KafkaConfig({"queued.max.request.bytes": "5", "socket.request.max.bytes": "5"})
    KafkaConfig({"queued.max.request.bytes": "0"})
