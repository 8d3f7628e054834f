"""Output of `reassign`: Kafka's sentences, and the same facts as plain data."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafkapy.admin.configs import Resource
from kafkapy.cli.framework.output import Report
from kafkapy.common.config_def import ResourceType
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.reassign.partition_files import format_reassignment
from kafkapy.tools.reassign.reassignment import Verification
from kafkapy.tools.reassign.states import PartitionState

if TYPE_CHECKING:
    from kafkapy.admin.cluster_replicas import Assignment, PlanSummary
    from kafkapy.admin.dry_run import PlannedRequest

VERIFY_REMINDER = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the"
    " throttle is removed."
)


def proposal_report(
    current: Assignment, proposed: Assignment, summary: PlanSummary | None
) -> Report:
    """`--generate`: the current and the proposed assignment."""
    before, after = format_reassignment(current), format_reassignment(proposed)
    text = [
        "Current partition replica assignment",
        before,
        "",
        "Proposed partition reassignment configuration",
        after,
    ]
    data = {"current": json.loads(before), "proposed": json.loads(after)}
    if summary is not None:
        data["summary"] = {
            **summary._asdict(),
            "replicas": {str(b): n for b, n in summary.replicas.items()},
            "leaders": {str(b): n for b, n in summary.leaders.items()},
        }
    return Report("reassign", [data], text)


def summary_lines(summary: PlanSummary) -> list[str]:
    """Costs and results of a plan, for people."""
    size = "" if summary.bytes_to_copy is None else f" ({bytes_text(summary.bytes_to_copy)})"
    return [
        f"{_count(summary.partitions_changed, 'partition')} changed,"
        f" {_count(summary.replicas_to_copy, 'replica')} to copy{size},"
        f" {_count(summary.leaders_changed, 'preferred leader')} changed",
        f"replicas by broker: {_range(summary.replicas)};"
        f" preferred leaders by broker: {_range(summary.leaders)}",
    ]


def rollback_lines(current: Assignment) -> list[str]:
    """The first lines that `--execute` prints."""
    return [
        "Current partition replica assignment",
        "",
        format_reassignment(current),
        "",
        "Save this to use as the --reassignment-json-file option during rollback",
    ]


def execute_report(current: Assignment, states: Sequence[PartitionState]) -> Report:
    """`--execute` as data: the assignment for a rollback, and the state of each partition."""
    data = {
        "rollback": json.loads(format_reassignment(current)),
        "partitions": [partition_json(state) for state in states],
    }
    return Report("reassign", [data], [])


def started_line(partitions: Iterable[TopicPartition]) -> str:
    """The line for started moves."""
    names = sorted(partitions)
    plural = "" if len(names) == 1 else "s"
    return f"Successfully started partition reassignment{plural} for {_joined(names)}"


def cancelled_lines(partitions: Sequence[TopicPartition]) -> list[str]:
    """Results of `--cancel` for partitions."""
    if not partitions:
        return ["None of the specified partition reassignments are active."]
    plural = "" if len(partitions) == 1 else "s"
    return [f"Successfully cancelled partition reassignment{plural} for: {_joined(partitions)}"]


def cancelled_log_dir_lines(replicas: Mapping[Any, str]) -> list[str]:
    """Results of `--cancel` for replicas, which move back to these directories."""
    if not replicas:
        return ["None of the specified partition moves are active."]
    return [log_dir_line(replica, path) for replica, path in replicas.items()]


def log_dir_line(replica: Any, path: str) -> str:
    """The line for a replica that started to move to a directory."""
    return (
        f"Successfully started moving log directory to {path} for replica"
        f" {replica.topic_partition} with broker {replica.broker_id} "
    )


def verify_report(found: Verification, cleared: Sequence[str]) -> Report:
    """`--verify`; `cleared` are the lines about cleared throttles."""
    text = [
        "Status of partition reassignment:",
        *map(str, found.partitions),
        *(map(str, found.log_dirs) if found.log_dirs else [""]),
        *cleared,
    ]
    data = {
        "complete": found.is_complete,
        "any_running": found.any_running,
        "partitions": [partition_json(state) for state in found.partitions],
        "log_dirs": [
            {
                "topic": move.replica.topic,
                "partition": move.replica.partition,
                "broker": move.replica.broker_id,
                "target": move.target,
                "current": None if move.place is None else move.place.current,
                "future": None if move.place is None else move.place.future,
                "state": move.state.name,
            }
            for move in found.log_dirs
        ],
        "throttles_cleared": bool(cleared),
    }
    return Report("reassign", [data], text)


def partition_json(state: PartitionState) -> dict[str, Any]:
    """One partition's state as data."""
    return {
        **state.partition._asdict(),
        "replicas": list(state.replicas),
        "target": list(state.target),
        "moving": state.is_moving,
        "complete": state.is_complete,
    }


def clearing_lines(
    brokers: Iterable[int], topics: Iterable[str], kept: Collection[Resource] = ()
) -> list[str]:
    """The lines about throttles that are being cleared. Resources of `kept` have earlier ones."""
    lines = []
    names: Mapping[ResourceType, Iterable[object]]
    names = {ResourceType.BROKER: brokers, ResourceType.TOPIC: topics}
    for kind, listed in names.items():
        cleared = [name for name in listed if Resource(kind, str(name)) not in kept]
        if not cleared:
            continue
        word = kind.name.lower()
        plural = "" if len(cleared) == 1 else "s"
        lines.append(f"Clearing {word}-level throttles on {word}{plural} {_joined(cleared)}")
    return lines


def restored_line(resources: Sequence[Resource]) -> str:
    """The line about earlier throttles, which are restored."""
    return (
        f"Throttles from before this reassignment are set on {_names(resources)}: kafkapy configs"
        " --describe shows them"
    )


def unsaved_line(throttles: Mapping[Resource, Mapping[str, str]], path: str, reason: str) -> str:
    """The warning about earlier throttles that cannot be saved."""
    listed = ", ".join(
        f"{_names([resource])} {key}={value}"
        for resource, configs in throttles.items()
        for key, value in configs.items()
    )
    return (
        "There are throttles already, and --verify will not restore them, because"
        f" {path} cannot be written: {reason}: {listed}"
    )


def _names(resources: Iterable[Resource]) -> str:
    return ", ".join(f"{each.type.name.lower()} {each.name}" for each in resources)


def requests_report(command: str, requests: Sequence[PlannedRequest]) -> Report:
    """`--dry-run`: a line for each request that would have been sent."""
    text = [
        f"Would send {request.api} v{request.version} to"
        f" {'any broker' if request.broker_id is None else f'broker {request.broker_id}'}: "
        + json.dumps(request.body, separators=(",", ":"))
        for request in requests
    ]
    data = [request._asdict() for request in requests]
    return Report(command, data, text or ["Nothing would be sent."])


def bytes_text(count: float) -> str:
    """A size in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _range(counts: Mapping[int, int]) -> str:
    if not counts:
        return "none"
    least, most = min(counts.values()), max(counts.values())
    return str(least) if least == most else f"{least} to {most}"


def _joined(values: Iterable[object]) -> str:
    return ",".join(map(str, values))
