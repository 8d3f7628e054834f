"""Metrics of the broker, under the names that the JMX exporter gives Kafka's beans.

The hot path adds to plain integers. `MetricsCollector` in `metrics_server` converts them to metric
families for each scrape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from kafkapy.server.counts.request_times import RequestTimes
from kafkapy.server.counts.zookeeper_metrics import ZooKeeperMetrics


class TopicCounters:
    """BrokerTopicMetrics of one topic."""

    __slots__ = ("bytes_in", "bytes_out", "failed_fetches", "failed_produces", "fetches",
                 "messages_in", "produces")  # fmt: skip

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.produces = 0
        self.fetches = 0
        self.failed_produces = 0
        self.failed_fetches = 0


class RequestMetrics:
    """Times by API name."""

    def __init__(self) -> None:
        self.by_name: defaultdict[str, RequestTimes] = defaultdict(RequestTimes)

    def observe(self, name: str, seconds: float) -> None:
        self.by_name[name].add(seconds)


class Metrics:
    """All counters of one broker."""

    def __init__(self) -> None:
        self.requests = RequestMetrics()
        self.zookeeper = ZooKeeperMetrics()
        self.topics: defaultdict[str, TopicCounters] = defaultdict(TopicCounters)
        self.broker_state = 0

    def count_append(self, topic: str, records: int, size_bytes: int) -> None:
        counters = self.topics[topic]
        counters.produces += 1
        counters.messages_in += records
        counters.bytes_in += size_bytes

    def keep_topics(self, hosted: Mapping[str, Collection[int]]) -> None:
        """Merge the counters of topics without a hosted partition into those of the empty topic
        name. This bounds memory while topics are created and deleted.
        """
        hosted_topics = {topic for topic, indexes in hosted.items() if indexes}
        for topic in self.topics.keys() - hosted_topics - {""}:
            removed, others = self.topics.pop(topic), self.topics[""]
            for name in TopicCounters.__slots__:
                setattr(others, name, getattr(others, name) + getattr(removed, name))

    def count_failed_produce(self, topic: str) -> None:
        self._counters(topic).failed_produces += 1

    def count_fetch(self, topic: str, size_bytes: int) -> None:
        counters = self.topics[topic]
        counters.fetches += 1
        counters.bytes_out += size_bytes

    def count_failed_fetch(self, topic: str) -> None:
        self._counters(topic).failed_fetches += 1

    def _counters(self, topic: str) -> TopicCounters:
        """The counters for a failure. Topics that were never served share one set of counters,
        because a failed request may name any topic.
        """
        return self.topics[topic if topic in self.topics else ""]
