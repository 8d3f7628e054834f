"""`reassign --verify` and `--cancel` over the brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkapy.admin.log_dirs import Replica
from kafkapy.admin.reassignments import ReassignmentFailed
from kafkapy.cli.commands.reassign.options import ReassignOptions
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.cli.framework.output import Report, show
from kafkapy.cli.views.reassign import (
    cancelled_lines,
    cancelled_log_dir_lines,
    clearing_lines,
    restored_line,
    verify_report,
)
from kafkapy.tools.json_input import read_text
from kafkapy.tools.reassign import reassignment
from kafkapy.tools.reassign.partition_files import ReassignmentFile, parse_reassignment
from kafkapy.tools.reassign.throttle_record import ThrottleRecord, by_resource
from kafkapy.tools.reassign.throttles import clear_throttles

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster


def read_file(options: ReassignOptions) -> ReassignmentFile:
    """The reassignment file.

    Raises:
        JsonInputError: it cannot be read, or is malformed.
    """
    assert options.reassignment_json_file is not None
    return parse_reassignment(read_text(options.reassignment_json_file))


def verify(cluster: Cluster, options: ReassignOptions, env: Environment) -> ExitStatus:
    """Print the states of the moves. With `--watch`, first show their progress until they end."""
    file = read_file(options)
    if options.watch:
        from kafkapy.cli.commands.reassign.watch import watch

        watch(cluster, file, env)
    found = reassignment.verify(cluster, file)
    cleared: Sequence[str] = ()
    try:
        if found.is_over and not options.preserve_throttles:
            cleared = _clear(cluster, options, file, env)
    finally:  # print the states even if a throttle could not be removed
        _show(env, verify_report(found, cleared), options)
    return ExitStatus.FAILURE if options.strict and not found.is_complete else ExitStatus.SUCCESS


def cancel(cluster: Cluster, options: ReassignOptions, env: Environment) -> ExitStatus:
    """Stop the moves of a file. Fails if a broker does not respond: its moves may continue."""
    file = read_file(options)
    partitions, uncancelled = reassignment.cancel_moves(cluster, file.targets)
    text = cancelled_lines(partitions) if partitions or not uncancelled else []
    replicas: list[Replica] = []
    try:
        if uncancelled:
            raise ReassignmentFailed(reassignment.cancel_errors(uncancelled))
        cancelled, refused, unknown = reassignment.cancel_log_dir_moves(cluster, file.log_dirs)
        if cancelled or not (refused or unknown):
            text += cancelled_log_dir_lines(cancelled)
        replicas += cancelled
        if unknown:
            env.warn(
                "Error cancelling log directory moves, because the broker does not respond: "
                + ",".join(map(str, unknown))
            )
        if refused:
            raise ReassignmentFailed(reassignment.log_dir_errors(refused))
        if not options.preserve_throttles:
            text += _clear(cluster, options, file, env)
    finally:  # print the cancelled moves even if a later step failed
        data = {
            "cancelled": [str(tp) for tp in partitions],
            "log_dir_moves_cancelled": [str(replica) for replica in replicas],
        }
        _show(env, Report("reassign", [data], text), options)
    return ExitStatus.FAILURE if unknown else ExitStatus.SUCCESS


def _clear(
    cluster: Cluster, options: ReassignOptions, file: ReassignmentFile, env: Environment
) -> list[str]:
    """Remove the throttles of live brokers and of the file's topics. Brokers that are down keep
    their throttles; the command does not wait for them."""
    assert options.reassignment_json_file is not None
    known = cluster.metadata(sorted({tp.topic for tp in file.targets}) or [], refresh=True)
    file_brokers = {b for replicas in file.targets.values() for b in replicas}
    live = sorted(known.brokers)
    topics = [name for name, topic in sorted(known.topics.items()) if topic.partitions]
    for broker_id in sorted(file_brokers.difference(live)):
        env.warn(f"Broker {broker_id} is not alive: its throttles were not removed.")
    record = ThrottleRecord(options.reassignment_json_file, known.cluster_id)
    saved = record.read()
    previous, restored = by_resource(saved.previous), by_resource(saved.restored)
    kept = clear_throttles(cluster, live, topics, previous, restored)
    if not options.dry_run:
        if kept:
            env.warn(restored_line(kept))
        record.settle(live)
    return clearing_lines(live, topics, kept)


def _show(env: Environment, report: Report, options: ReassignOptions) -> None:
    """Show a report. A dry run shows only its requests instead."""
    if not options.dry_run:
        show(env, report, options.output)
