"""An append of a coordinator waits for its acks, outside of any transaction, unless it says so."""

from __future__ import annotations

from kafkapy.coordinator.effects import Append, Effects


def test_an_append_is_acknowledged_by_all_and_no_producers() -> None:
    append = Append(1, 0, 5, [])
    assert (append.required_acks, append.producer) == (-1, None)


def test_effects_share_nothing() -> None:
    first: Effects[None] = Effects()
    first.replies.append(("a", None))
    assert Effects[None]().replies == []
