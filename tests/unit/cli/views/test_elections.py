"""Results of elections in Kafka's groups."""

from __future__ import annotations

from kafkapy.cli.views.elections import election_report, preferred_election_report
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition


def test_each_group_is_sorted_and_only_failures_are_counted() -> None:
    needless = ApiError(ErrorCode.ELECTION_NOT_NEEDED)
    results = {TopicPartition("t", p): error for p, error in ((2, None), (1, None), (0, needless))}
    report, failed = election_report("UNCLEAN", results)
    assert list(report.text) == [
        "Successfully completed leader election (UNCLEAN) for partitions t-1, t-2",
        "Valid replica already elected for partitions t-0",
    ]
    assert failed == 0
    older, _ = preferred_election_report({})
    assert (list(older.text), older.data) == ([], [])
