"""Which open transactions nobody will end."""

from kafkapy.admin.transactions import ProducerState, TransactionDescription
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.hanging_transactions import OpenTransaction, candidates, hanging

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def producer(producer_id: int, last_ms: int = 0, start: int | None = 5) -> ProducerState:
    return ProducerState(producer_id, 0, 0, 0, last_ms, start)


def test_only_what_is_open_and_old_is_a_candidate() -> None:
    states = {T0: [producer(1), producer(2, start=None), producer(3, last_ms=950)], T1: []}
    assert candidates(states, now_ms=1000, timeout_ms=100) == [OpenTransaction(T0, producer(1))]


def test_what_its_coordinator_knows_does_not_hang() -> None:
    found = [OpenTransaction(T0, producer(i)) for i in (1, 2, 3, 4)]
    ids = {1: "known", 2: "elsewhere", 3: "gone"}
    described = {
        "known": TransactionDescription("known", 0, 1, 0, "Ongoing", 1, 0, (T0,)),
        "elsewhere": TransactionDescription("elsewhere", 0, 2, 0, "Ongoing", 1, 0, (T1,)),
    }
    assert [each.producer.producer_id for each in hanging(found, ids, described)] == [2, 3, 4]
