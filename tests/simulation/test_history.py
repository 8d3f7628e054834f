"""An allowed loss excuses the lost records, and no others."""

from __future__ import annotations

import pytest

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from tests.harness.faults.anomalies import Mode, Outcome
from tests.simulation.events import SECOND_US
from tests.simulation.history import Answer, Loss, SimHistory
from tests.simulation.world import World

AT = TopicPartition("orders", 0)
LOSS = Loss(kept=10, end=15, epoch=5, at_us=60 * SECOND_US, reason="a torn disk")
BEFORE, AFTER = 30 * SECOND_US, 90 * SECOND_US


@pytest.fixture
def history() -> SimHistory:
    history = SimHistory(World(0))
    history.allow_loss(AT, LOSS)
    return history


@pytest.mark.parametrize(
    ("offset", "answer", "is_excused"),
    [
        (9, Answer(4, BEFORE), False),
        (10, Answer(4, BEFORE), True),
        (14, Answer(4, BEFORE), True),
        (9, Answer(4, AFTER), False),
        (20, Answer(4, AFTER), True),  # a replaced leader goes on for a while
        (10, Answer(5, AFTER), False),
        (14, Answer(6, AFTER), False),
        (12, Answer(5, BEFORE), True),  # this epoch's leader lost power and goes on to lead
        (15, Answer(5, BEFORE), False),
    ],
)
def test_a_loss_excuses_its_offsets_only(
    history: SimHistory, offset: int, answer: Answer, is_excused: bool
) -> None:
    history.acknowledged(answer, "orders", 0, [7], offset)
    [send] = history.judged("orders").sends
    assert (send.outcome is Outcome.UNKNOWN) is is_excused


def test_another_partition_is_judged(history: SimHistory) -> None:
    history.acknowledged(Answer(4, BEFORE), "orders", 1, [7], 12)
    [send] = history.judged("orders").sends
    assert send.outcome is Outcome.ACKED


def test_what_was_read_and_lost_is_left_out(history: SimHistory) -> None:
    consumer = ("r1", Mode.ASSIGN)
    history.polled(Answer(4, BEFORE), "orders", 0, consumer, [(9, 1), (10, 2), (14, 3)])
    history.polled(Answer(5, AFTER), "orders", 0, consumer, [(10, 4), (11, 5)])
    polls = history.judged("orders").polls
    assert [list(poll.offsets) for poll in polls] == [[9], [10, 11]]


def test_a_producer_that_misses_something_needs_a_loss_since_its_last_answer(
    history: SimHistory,
) -> None:
    history.out_of_order("orders", 0, Answer(4, BEFORE))
    assert not history.unexplained()
    history.out_of_order("orders", 0, Answer(5, AFTER))
    assert len(history.unexplained()) == 1


def test_values_sent_anew_may_be_there_twice_after_a_loss(history: SimHistory) -> None:
    """An unclean leader has no state of the producer; the next one had its batch all along."""
    consumer = ("r1", Mode.ASSIGN)
    history.out_of_order("orders", 0, Answer(4, BEFORE), [2])
    history.polled(Answer(6, AFTER), "orders", 0, consumer, [(20, 1), (21, 2), (22, 2), (23, 3)])
    history.acknowledged(Answer(6, AFTER), "orders", 0, [2], 22)
    history.sent("orders", 0, [1, 3])
    assert not history.unexplained()
    assert not any(history.judged("orders").judge().values())
    history.polled(Answer(4, BEFORE), "orders", 0, consumer, [(30, 2)])  # and is lost
    assert not any(history.judged("orders").judge().values())
    history.polled(Answer(6, AFTER), "orders", 0, consumer, [(24, 3)])
    assert history.judged("orders").judge()["duplicate"]


def test_commits_of_before_a_loss_do_not_count(history: SimHistory) -> None:
    history.committed(Answer(4, BEFORE), "billing", 50)
    assert history.last_commit("billing")[1] == 50
    history.allow_loss(TopicPartition(GROUP_METADATA_TOPIC, 0), LOSS)
    assert history.last_commit("billing")[1] == -1
    history.committed(Answer(5, AFTER), "billing", 3)
    assert history.last_commit("billing")[1] == 3


def test_the_generations_of_a_group_that_was_removed_begin_anew(history: SimHistory) -> None:
    """Generations of other groups do not restart."""
    history.was_group_removed = lambda group: group == "shipping"
    for group in ("shipping", "billing"):
        history.owns(Answer(4, BEFORE), f"{group}/0", 1, "m1")
        history.owns(Answer(4, AFTER), f"{group}/0", 1, "m2")
    [message] = history.unexplained()
    assert "billing/0 has two owners" in message


def test_a_generation_whose_records_were_never_replicated_begins_anew(history: SimHistory) -> None:
    """Seed 24263149: a coordinator answered SyncGroup from the end of the log that it loaded."""
    history.was_load_replicated = lambda epoch: epoch != 4
    for epoch, group in ((4, "shipping"), (5, "billing")):
        history.owns(Answer(epoch, BEFORE), f"{group}/0", 2, "m1")
        history.owns(Answer(6, AFTER), f"{group}/0", 2, "m2")
    [message] = history.unexplained()
    assert "billing/0 has two owners" in message
    history.object_to_group(Answer(4, BEFORE), "anything else")
    assert len(history.unexplained()) == 2
