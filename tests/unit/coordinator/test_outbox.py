"""Replies now, replies later, appends and what follows them."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.messages import HeartbeatResult
from kafkapy.coordinator.outbox import Outbox
from kafkapy.record.builder import RecordData

ANSWER = HeartbeatResult()


def test_effects_are_taken_once_in_order() -> None:
    outbox = Outbox()
    outbox.reply("a", ANSWER)
    outbox.reply("b", ANSWER)
    assert outbox.take().replies == [("a", ANSWER), ("b", ANSWER)]
    assert outbox.take().replies == []


def test_a_parked_token_is_answered_by_its_first_answer_only() -> None:
    outbox = Outbox()
    ticket = outbox.hold("a")
    assert (outbox.take().replies, len(outbox._token_by_ticket)) == ([], 1)
    outbox.answer(ticket, ANSWER)
    outbox.answer(ticket, ANSWER)
    assert (outbox.take().replies, len(outbox._token_by_ticket)) == ([("a", ANSWER)], 0)


def test_a_forgotten_token_is_not_held_and_not_answered() -> None:
    outbox = Outbox()
    ticket = outbox.hold("a")
    outbox.drop_token("a")
    outbox.drop_token("never seen")
    assert not outbox._token_by_ticket
    outbox.answer(ticket, ANSWER)
    assert outbox.take().replies == []
    outbox.answer(outbox.hold("a"), ANSWER)
    assert outbox.take().replies == [("a", ANSWER)]


def test_a_token_waits_for_one_thing() -> None:
    outbox = Outbox()
    outbox.hold("a")
    with pytest.raises(AssertionError, match="waits already"):
        outbox.hold("a")


def test_what_follows_an_append_happens_once() -> None:
    outbox = Outbox()
    seen: list[tuple[int, ErrorCode, int]] = []
    record = RecordData(b"k", b"v")
    outbox.append(3, 9, [record], lambda *args: seen.append(args))
    (append,) = outbox.take().appends
    assert (append.partition, append.leader_epoch, append.records) == (3, 9, [record])
    assert append.required_acks == -1
    for _ in range(2):
        outbox.append_completed(77, append.append_id, ErrorCode.NONE, 1234)
    assert seen == [(77, ErrorCode.NONE, 1234)]


def test_nobody_waits_for_tombstones() -> None:
    outbox = Outbox()
    outbox.append_without_acks(3, 9, [RecordData(b"k", None)])
    (append,) = outbox.take().appends
    assert append.required_acks == 0
    outbox.append_completed(77, append.append_id, ErrorCode.NONE, 1234)
    assert outbox.take().replies == []
