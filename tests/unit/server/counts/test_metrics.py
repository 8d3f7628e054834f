"""Metrics: appends and reads by topic, times by API, in bounded memory."""

from __future__ import annotations

from kafkapy.server.counts.metrics import Metrics, TopicCounters


def counted(counters: TopicCounters) -> dict[str, int]:
    """The counters that are not 0."""
    values = {name: getattr(counters, name) for name in TopicCounters.__slots__}
    return {name: value for name, value in values.items() if value}


def test_appends_and_reads_are_counted_by_topic() -> None:
    metrics = Metrics()
    metrics.count_append("t", 3, 100)
    metrics.count_append("t", 1, 50)
    metrics.count_fetch("t", 70)
    metrics.count_fetch("u", 7)
    metrics.count_failed_produce("t")
    metrics.count_failed_fetch("u")
    assert counted(metrics.topics["t"]) == {
        "messages_in": 4,
        "bytes_in": 150,
        "produces": 2,
        "bytes_out": 70,
        "fetches": 1,
        "failed_produces": 1,
    }
    assert counted(metrics.topics["u"]) == {"bytes_out": 7, "fetches": 1, "failed_fetches": 1}


def test_made_up_topic_names_cost_no_memory() -> None:
    metrics = Metrics()
    for i in range(100):
        metrics.count_failed_fetch(f"made-up-{i}")
        metrics.count_failed_produce(f"made-up-{i}")
    assert list(metrics.topics) == [""]
    assert counted(metrics.topics[""]) == {"failed_fetches": 100, "failed_produces": 100}


def test_requests_are_timed_by_api() -> None:
    requests = Metrics().requests
    requests.observe("Fetch", 0.25)
    requests.observe("Fetch", 0.5)
    requests.observe("Produce", 1.0)
    fetch = requests.by_name["Fetch"]
    assert (fetch.count, fetch.total_s) == (2, 0.75)
    assert requests.by_name["Produce"].count == 1
