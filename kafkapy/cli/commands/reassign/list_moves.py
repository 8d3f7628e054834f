"""`reassign --list`: the partitions that are moving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkapy.admin.reassignments import Reassignment, running_reassignments
from kafkapy.cli.commands.reassign.options import ReassignOptions
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster


def list_moves(cluster: Cluster, options: ReassignOptions, env: Environment) -> ExitStatus:
    """Print the partitions that are moving."""
    show(env, list_report(running_reassignments(cluster)), options.output)
    return ExitStatus.SUCCESS


def list_report(running: Mapping[TopicPartition, Reassignment]) -> Report:
    """A line, a row and an object for each moving partition."""
    text = ["No partition reassignments found."]
    if running:
        text = ["Current partition reassignments:"]
    data, rows = [], []
    for tp, move in sorted(running.items()):
        replicas, adding, removing = (
            ",".join(map(str, ids)) for ids in (move.replicas, move.adding, move.removing)
        )
        moves = f" adding: {adding}." if adding else ""
        moves += f" removing: {removing}." if removing else ""
        text.append(f"{tp}: replicas: {replicas}.{moves}")
        rows.append((str(tp), replicas, adding, removing))
        data.append(
            {
                **tp._asdict(),
                "replicas": list(move.replicas),
                "adding_replicas": list(move.adding),
                "removing_replicas": list(move.removing),
            }
        )
    tables = [Table(("Partition", "Replicas", "Adding", "Removing"), rows)] if rows else []
    return Report("reassign", data, text, tables)
