"""librdkafka's statistics in the layout of Kafka's metrics."""

import json

import pytest

from kafkapy.tools.perf.client_metrics import ClientMetrics


def test_numbers_are_rows_sorted_by_name() -> None:
    metrics = ClientMetrics("producer")
    brokers = {"b": {"nodeid": 1, "tx": 4, "name": "b"}}
    metrics.on_statistics(json.dumps({"client_id": "c", "tx": 9, "age": 1.5, "brokers": brokers}))
    names = [
        "producer-metrics:age:{client-id=c}",
        "producer-metrics:tx:{client-id=c}",
        "producer-node-metrics:nodeid:{client-id=c, node-id=node-1}",
        "producer-node-metrics:tx:{client-id=c, node-id=node-1}",
    ]
    width = len(names[2])
    assert metrics.lines() == [
        "",
        f"{'Metric Name':{width}}   Value",
        f"{names[0]:{width}} : 1.500",
        f"{names[1]:{width}} : 9",
        f"{names[2]:{width}} : 1",
        f"{names[3]:{width}} : 4",
    ]


@pytest.mark.parametrize("late", [1, 3])
def test_a_client_is_asked_until_it_has_told(late: int) -> None:
    """On a busy machine the statistics come later than their interval says."""
    metrics = ClientMetrics("consumer")
    waited: list[float] = []

    def poll(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == late:
            metrics.on_statistics('{"rxmsgs": 7}')

    metrics.wait_for_update(poll)
    assert len(waited) == late
    assert metrics.lines()[-1].endswith(": 7")


def test_a_client_that_tells_nothing_is_not_waited_for_long() -> None:
    waited: list[float] = []
    ClientMetrics("consumer").wait_for_update(waited.append)
    ClientMetrics("producer").wait_for_producer_id(waited.append)
    assert 2 <= sum(waited) <= 12


@pytest.mark.parametrize(
    ("statistics", "polls"),
    [
        (['{"eos": {"idemp_state": "WaitTransport"}}', '{"eos": {"idemp_state": "Assigned"}}'], 2),
        (['{"tx": 1}'], 1),  # not idempotent
    ],
)
def test_a_producer_is_waited_for_until_it_has_its_id(statistics: list[str], polls: int) -> None:
    """librdkafka's half a second for it was in the latencies: 47 ms on average, Java's has 10."""
    metrics = ClientMetrics("producer")
    waited: list[float] = []

    def poll(seconds: float) -> None:
        metrics.on_statistics(statistics[len(waited)])
        waited.append(seconds)

    metrics.wait_for_producer_id(poll)
    assert len(waited) == polls
