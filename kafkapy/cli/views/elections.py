"""Results of leader elections as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkapy.admin.errors import java_text
from kafkapy.cli.framework.output import Report, error_json
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition

Results = Mapping[TopicPartition, ApiError | None]


def election_report(kind: str, results: Results) -> tuple[Report, int]:
    """The text of `LeaderElectionCommand`, and the number of failed elections."""
    return _report("leader-election", f"leader election ({kind})", "Valid", results)


def preferred_election_report(results: Results) -> tuple[Report, int]:
    """The text of `PreferredReplicaLeaderElectionCommand`, and the number of failed elections."""
    tool = "preferred-replica-election"
    return _report(tool, "preferred leader election", "Preferred", results)


def _report(tool: str, election: str, replica: str, results: Results) -> tuple[Report, int]:
    elected, not_needed, failed = _by_outcome(results)
    text = []
    if elected:
        names = ", ".join(map(str, elected))
        text.append(f"Successfully completed {election} for partitions {names}")
    if not_needed:
        names = ", ".join(map(str, not_needed))
        text.append(f"{replica} replica already elected for partitions {names}")
    text += [
        f"Error completing {election} for partition: {tp}: {java_text(error)}"
        for tp, error in failed.items()
    ]
    return Report(tool, _data(results), text), len(failed)


def _by_outcome(
    results: Results,
) -> tuple[list[TopicPartition], list[TopicPartition], dict[TopicPartition, ApiError]]:
    """Elected partitions, partitions that needed no election, and failed partitions."""
    errors = {tp: error for tp, error in sorted(results.items()) if error is not None}
    not_needed = [tp for tp, e in errors.items() if e.code is ErrorCode.ELECTION_NOT_NEEDED]
    failed = {tp: e for tp, e in errors.items() if e.code is not ErrorCode.ELECTION_NOT_NEEDED}
    return sorted(results.keys() - errors.keys()), not_needed, failed


def _data(results: Results) -> list[dict[str, Any]]:
    return [
        {**tp._asdict(), "elected": error is None, **error_json(error)}
        for tp, error in sorted(results.items())
    ]
