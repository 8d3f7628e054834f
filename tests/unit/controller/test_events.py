"""Events compare by what they say, so that a watch set twice is one watch."""

from __future__ import annotations

from kafkapy.controller import events


def test_equal_events_are_one() -> None:
    assert len({events.TopicChange(), events.TopicChange()}) == 1
    changes = {events.PartitionModification(topic) for topic in ("a", "b", "a")}
    assert len(changes) == 2
    assert events.BrokerChange() != events.TopicChange()


def test_election_types_have_the_wire_numbers() -> None:
    assert events.ElectionType(0) is events.ElectionType.PREFERRED
    assert events.ElectionType(1) is events.ElectionType.UNCLEAN
