"""`kafkapy state-change-log-merger`: Kafka's `kafka.tools.StateChangeLogMerger`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import CommonOptions, OutputFormat, is_given, refuse, value
from kafkapy.cli.framework.output import ENVELOPE_VERSION, Report, Table, show
from kafkapy.common.comma_separated import java_split
from kafkapy.common.java_numbers import is_natural
from kafkapy.common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafkapy.tools.partition_timeline import Timeline
    from kafkapy.tools.state_change_lines import LineFilter
    from kafkapy.tools.state_change_log_merger import MergedLine

CHUNK_LINES: Final = 1000
_TIME_FORM: Final = "yyyy-MM-dd HH:mm:ss,SSS"


@dataclass
class MergerOptions(CommonOptions):
    """The flags of `StateChangeLogMerger`, and --timeline."""

    logs: str | None = value(
        "State-change logs; they may be compressed (gzip, bzip2, xz).", metavar="FILE,..."
    )
    logs_regex: str | None = value(
        "Or a directory, and a regular expression for the names of its files.",
        metavar="[DIR/]REGEX",
    )
    topic: str | None = value("Only lines about this topic.", metavar="TOPIC")
    partitions: str | None = value("Only lines about these of its partitions.", metavar="0,1,...")
    start_time: str | None = value("Only lines of this time or later.", metavar=_TIME_FORM)
    end_time: str | None = value("Only lines of this time or earlier.", metavar=_TIME_FORM)
    timeline: str | None = value(
        "Draw the events and the leaders of one partition.", metavar="TOPIC-PARTITION"
    )


def run(options: MergerOptions, env: Environment) -> ExitStatus:
    """Write the lines in the order of time, while the logs are read."""
    from kafkapy.tools.state_change_log_merger import files_matching, merge

    _check(options)
    line_filter = _filter(options)
    paths = (
        [path for path in options.logs.split(",") if path]
        if options.logs is not None
        else files_matching(options.logs_regex or "")
    )
    lines = merge(paths, line_filter)
    if options.timeline is not None:
        _show_timeline(options, env, lines)
    elif options.output is OutputFormat.json:
        _write_json(env, lines, line_filter)
    elif options.output is OutputFormat.table:
        _show_tables(env, lines, line_filter)
    else:
        _write_text(env, lines)
    env.stdout.buffer.flush()
    return ExitStatus.SUCCESS


def _check(options: MergerOptions) -> None:
    if is_given(options, "logs") == is_given(options, "logs_regex"):
        raise UsageError(
            'Provide arguments to exactly one of the two options "[logs]" or "[logs-regex]"'
        )
    refuse(options, "timeline", "topic", "partitions")
    if options.partitions is not None and options.topic is None:
        raise UsageError(
            'The option "[topic]" needs to be provided an argument when specifying partition ids'
        )


def _filter(options: MergerOptions) -> LineFilter:
    from kafkapy.tools.state_change_lines import EARLIEST, LATEST, LineFilter, TimeRange

    times = TimeRange(options.start_time or EARLIEST, options.end_time or LATEST)
    if options.timeline is not None:
        chosen = _topic_partition(options.timeline)
        return LineFilter(times, chosen.topic, [chosen.partition])
    return LineFilter(times, options.topic, _partitions(options.partitions))


def _topic_partition(text: str) -> TopicPartition:
    topic, dash, partition = text.rpartition("-")
    if not (topic and dash and is_natural(partition)):
        raise UsageError(f"--timeline takes TOPIC-PARTITION, such as orders-0, not {text}")
    return TopicPartition(topic, int(partition))


def _partitions(text: str | None) -> list[int]:
    if text is None:
        return []
    words = java_split(text)
    for word in words:
        if not is_natural(word):
            raise UsageError(f"--partitions takes numbers, such as 0,1,2: '{word}' is none")
    numbers = [int(word) for word in words]
    repeated = sorted({number for number in numbers if numbers.count(number) > 1})
    if repeated:
        raise UsageError(
            "The list of partitions contains repeated entries: " + ",".join(map(str, repeated))
        )
    return numbers


def _write_text(env: Environment, lines: Iterator[MergedLine]) -> None:
    """Write lines in chunks. Lines before the damaged part of a file are written too."""
    chunk: list[bytes] = []
    try:
        for _, line, _ in lines:
            chunk.append(line)
            if len(chunk) == CHUNK_LINES:
                env.stdout.buffer.write(b"\n".join([*chunk, b""]))
                chunk.clear()
    finally:
        env.stdout.buffer.write(b"\n".join([*chunk, b""]))


def _write_json(env: Environment, lines: Iterator[MergedLine], line_filter: LineFilter) -> None:
    """Write a line with the envelope, then an object for each line of the logs."""
    import orjson

    write = env.stdout.buffer.write
    write(orjson.dumps({"kafkapy": ENVELOPE_VERSION, "command": COMMAND.name}) + b"\n")
    for date, line, path in lines:
        found = line_filter.partition_of(line)
        row = {
            "time": date.decode(),
            "topic": found.topic.decode(errors="replace"),
            "partition": found.partition,
            "path": path.encode(errors="surrogateescape").decode(errors="replace"),
            "line": line.decode(errors="replace"),
        }
        write(orjson.dumps(row) + b"\n")


def _show_tables(env: Environment, lines: Iterator[MergedLine], line_filter: LineFilter) -> None:
    """Show rows in chunks, so that memory use stays constant."""
    columns = ("Time", "Partition", "Log", "Line")
    while rows := [
        (
            date.decode(),
            f"{found.topic.decode(errors='replace')}-{found.partition}",
            path,
            line.decode(errors="replace"),
        )
        for date, line, path in islice(lines, CHUNK_LINES)
        if (found := line_filter.partition_of(line))
    ]:
        report = Report(COMMAND.name, [], [], [Table(columns, rows)])
        show(env, report, OutputFormat.table)


def _show_timeline(options: MergerOptions, env: Environment, lines: Iterator[MergedLine]) -> None:
    from kafkapy.tools.partition_timeline import timeline

    show(env, _timeline_report(str(options.timeline), timeline(lines)), options.output)


def _timeline_report(partition: str, found: Timeline) -> Report:
    from kafkapy.tools.partition_timeline import bar, duration_text

    events = [
        (
            event.time,
            f"+{duration_text(event.after_ms)}" if index else "",
            event.writer,
            "" if event.leader is None else str(event.leader),
            event.isr or "",
            event.message,
        )
        for index, event in enumerate(found.events)
    ]
    whole_ms = sum(leadership.duration_ms for leadership in found.leaderships)
    leaders = [
        (
            leadership.since,
            leadership.leader,
            duration_text(leadership.duration_ms),
            bar(leadership.duration_ms, whole_ms),
        )
        for leadership in found.leaderships
    ]
    tables = [
        Table(
            ("Time", "After", "Writer", "Leader", "ISR", "Event"), events, f"{partition}: events"
        ),
        Table(("Since", "Leader", "For", ""), leaders, f"{partition}: leaders"),
    ]
    data = [{"kind": "event", **event._asdict()} for event in found.events] + [
        {"kind": "leadership", **leadership._asdict()} for leadership in found.leaderships
    ]
    return Report("state-change-log-merger", data, _aligned(tables), tables)


def _aligned(tables: list[Table]) -> Iterator[str]:
    """The tables as plain text."""
    for table in tables:
        rows = [tuple(table.columns), *(tuple(map(str, row)) for row in table.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        yield f"{table.title}"
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            yield "  ".join(cells).rstrip()
        yield ""


COMMAND: Final = Command(
    "state-change-log-merger",
    MergerOptions,
    run,
    groups={
        "Which logs": "logs logs-regex",
        "Which lines": "topic partitions start-time end-time",
        "Timeline": "timeline",
    },
    examples={
        "Merge the logs of two brokers, and show one topic's lines.": (
            "--logs broker-1/state-change.log,broker-2/state-change.log --topic orders"
        ),
        "Draw the timeline of one partition.": (
            "--logs broker-1/state-change.log,broker-2/state-change.log --timeline orders-0"
        ),
    },
)
