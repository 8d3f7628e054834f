"""`kafkapy delete-records`: Kafka's `kafka-delete-records.sh` (`DeleteRecordsCommand`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.cli.framework.options import ClusterOptions, flag, require, value
from kafkapy.cli.framework.output import Report, Table, error_json, show
from kafkapy.cli.framework.termination import terminable
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition


@dataclass
class DeleteRecordsOptions(ClusterOptions):
    """The flags of `DeleteRecordsCommand`."""

    offset_json_file: str | None = value(
        "REQUIRED: the first offsets to keep, -1 for none:"
        ' {"partitions":[{"topic":"t","partition":0,"offset":5}],"version":1}.',
        metavar="FILE",
    )
    strict: bool = flag("Exit with 1 if the records of a partition were not deleted.")
    dry_run: bool = flag("Print the requests without sending them.")


def run(options: DeleteRecordsOptions, env: Environment) -> ExitStatus:
    """Delete records, and print the new low watermark of each partition."""
    from kafkapy.admin.records import delete_records
    from kafkapy.tools.json_input import read_text
    from kafkapy.tools.reassign.partition_files import parse_offsets

    require(options, "bootstrap_server", "offset_json_file")
    assert options.offset_json_file is not None
    offsets = parse_offsets(read_text(options.offset_json_file))
    if options.dry_run:
        from kafkapy.cli.views.reassign import requests_report

        with options.connect_dry(env, "kafkapy") as dry:
            delete_records(dry, offsets, {})
            show(env, requests_report("delete-records", dry.requests), options.output)
        return ExitStatus.SUCCESS
    results: dict[TopicPartition, int | ApiError] = {}
    try:
        with terminable(), options.connect(env) as cluster:
            delete_records(cluster, offsets, results)
    finally:  # also after an interrupt: deleted records do not come back
        known = {tp: results[tp] for tp in offsets if tp in results}
        if known or not offsets:
            show(env, report(known), options.output)
    failed = any(isinstance(result, ApiError) for result in results.values())
    return ExitStatus.FAILURE if failed and options.strict else ExitStatus.SUCCESS


def report(results: dict[TopicPartition, int | ApiError]) -> Report:
    """Low watermarks and errors, in the order of the file."""
    from kafkapy.admin.errors import java_text

    text = ["Executing records delete operation", "Records delete operation completed:"]
    data: list[dict[str, Any]] = []
    rows = []
    for tp, result in results.items():
        error = result if isinstance(result, ApiError) else None
        watermark = None if isinstance(result, ApiError) else result
        outcome = f"low_watermark: {watermark}" if error is None else f"error: {java_text(error)}"
        text.append(f"partition: {tp}\t{outcome}")
        rows.append((str(tp), "" if error else watermark, error.message if error else ""))
        data.append({**tp._asdict(), "low_watermark": watermark, **error_json(error)})
    return Report("delete-records", data, text, [Table(("Partition", "Begins at", "Error"), rows)])


COMMAND: Final = Command(
    "delete-records",
    DeleteRecordsOptions,
    run,
    reported_failures="the records of a partition were not deleted",
    groups={
        "What to do": "offset-json-file dry-run strict",
    },
    examples={
        "Show the requests without sending them.": "--offset-json-file offsets.json --dry-run {B}",
        "Delete the records below the offsets of a file.": "--offset-json-file offsets.json {B}",
    },
)
