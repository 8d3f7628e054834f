"""Topics that match an expression: subscribed to by name, also when they are created later."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafkapy.common.errors import ConfigError
from kafkapy.tools.console import matching_topics
from kafkapy.tools.console.matching_topics import MatchingTopics


class FakeConsumer:
    """librdkafka's consumer in a cluster with `topics`; None if no broker responds."""

    def __init__(self) -> None:
        self.topics: list[str] | None = ["t-1", "t-2", "T", "a.b", "__consumer_offsets"]
        self.limits_s: list[float] = []
        self.subscribed: list[list[str]] = []

    def list_topics(self, timeout: float) -> SimpleNamespace:
        self.limits_s.append(timeout)
        if self.topics is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(topics=dict.fromkeys(self.topics))

    def subscribe(self, topics: list[str]) -> None:
        self.subscribed.append(topics)

    def unsubscribe(self) -> None:
        self.subscribed.append([])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr(matching_topics, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    return clock


def matching(fake: FakeConsumer, expression: str, **properties: str) -> MatchingTopics:
    return MatchingTopics(fake, expression, properties)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (r"[t]-[\d]", ["t-1", "t-2"]),
        (r"(?!t-1)t.*", ["t-2"]),
        ("(?i)t", ["T"]),
        (r"[\w\.\-]+", ["T", "a.b", "t-1", "t-2"]),
        (r"a[^\d\]]b", ["a.b"]),
        ("t", []),
    ],
)
def test_expressions_are_read_as_java_reads_them(expression: str, expected: list[str]) -> None:
    """librdkafka subscribed to none of these, or to others."""
    fake = FakeConsumer()
    assert matching(fake, expression).refresh() is True
    assert fake.subscribed == ([expected] if expected else [])


def test_an_expression_that_python_reads_otherwise_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not served: it has &&"):
        matching(FakeConsumer(), "[a-z&&[^p]]")


def test_an_expression_matches_no_internal_topic_unless_told_so() -> None:
    fake = FakeConsumer()
    matching(fake, "_.*").refresh()
    assert fake.subscribed == []
    matching(fake, "_.*", **{"exclude.internal.topics": "false"}).refresh()
    assert fake.subscribed == [["__consumer_offsets"]]


def test_new_topics_are_found_and_deleted_ones_are_left(clock: SimpleNamespace) -> None:
    fake = FakeConsumer()
    fake.topics = ["a"]
    topics = matching(fake, "b.*", **{"metadata.max.age.ms": "2000"})
    topics.refresh()
    fake.topics = ["b1"]
    assert topics.refresh() is False
    clock.now_s = 2
    assert topics.refresh() is True
    fake.topics = ["b1", "b2"]
    topics.refresh_soon()
    topics.refresh()
    topics.refresh_soon()
    topics.refresh()
    fake.topics = []
    topics.refresh_soon()
    topics.refresh()
    assert fake.subscribed == [["b1"], ["b1", "b2"], []]


def test_a_cluster_that_does_not_respond_gets_more_time_and_pauses(clock: SimpleNamespace) -> None:
    fake = FakeConsumer()
    fake.topics = None
    topics = matching(fake, "t")
    for _ in range(5):
        assert topics.refresh() is False
        assert topics.refresh() is False
        clock.now_s += 1
    assert fake.limits_s == [1, 2, 4, 8, 8]
    fake.topics = ["t"]
    assert topics.refresh() is True
    assert fake.subscribed == [["t"]]
