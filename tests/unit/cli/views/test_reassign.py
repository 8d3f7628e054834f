"""Output of `reassign`: plurals, sizes and empty dry runs."""

from __future__ import annotations

from kafkapy.admin.cluster_replicas import PlanSummary
from kafkapy.cli.views.reassign import bytes_text, requests_report, started_line, summary_lines
from kafkapy.common.topic_partition import TopicPartition


def test_one_is_not_many() -> None:
    t0 = TopicPartition("t", 0)
    assert started_line([t0]) == "Successfully started partition reassignment for t-0"
    assert summary_lines(PlanSummary(1, 0, None, 1, {1: 2, 2: 2}, {})) == [
        "1 partition changed, 0 replicas to copy, 1 preferred leader changed",
        "replicas by broker: 2; preferred leaders by broker: none",
    ]


def test_sizes() -> None:
    sizes = (0, 1023, 1024, 1536 * 1024, 5 << 40, 5000 << 40)
    assert [bytes_text(n) for n in sizes] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 MiB",
        "5.0 TiB",
        "5000.0 TiB",
    ]


def test_a_dry_run_of_nothing() -> None:
    assert list(requests_report("x", []).text) == ["Nothing would be sent."]
