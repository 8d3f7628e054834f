"""`consumer-groups` as text, table and JSON.

The text is that of Kafka 3.7 and before: 3.8 and 3.9 lack some line ends and topic names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafkapy.admin.groups import GroupDescription, GroupListing
from kafkapy.cli.framework.output import Report, Table, error_json
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.groups.group_rows import GroupOffsetRow, MemberRow

COMMAND: Final = "consumer-groups"
NOTHING: Final = "-"

_OFFSET_COLUMNS: Final = (
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    *("CONSUMER-ID", "HOST", "CLIENT-ID"),
)
_RESET_COLUMNS: Final = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
_DELETE_COLUMNS: Final = ("TOPIC", "PARTITION", "STATUS")
_STATE_COLUMNS: Final = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
# Columns for groups of the consumer protocol, as in Kafka 4 (KIP-1099).
_EPOCH_COLUMNS: Final = ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH")
_RECONCILIATION_COLUMNS: Final = (
    *("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"),
)
_COLUMN_MIN: Final = 15


def list_report(groups: Sequence[GroupListing], *, states: bool, types: bool) -> Report:
    """Group ids alone, or with the requested columns."""
    columns = ["GROUP", *(["TYPE"] if types else []), *(["STATE"] if states else [])]
    rows = [
        [g.group_id, *([g.type] if types else []), *([g.state] if states else [])] for g in groups
    ]
    if len(columns) == 1:
        text = [group.group_id for group in groups]
    else:
        widths = [max([_COLUMN_MIN, *(len(g.group_id) for g in groups)]) + 10, 20, 20]
        text = [_padded(row, widths) for row in (columns, *rows)]
    data = listing_json(groups)
    table = Table(
        ("Group", "Type", "State"), [(g.group_id, g.type, g.state) for g in groups], "Groups"
    )
    return Report(COMMAND, data, text, [table])


def listing_json(groups: Sequence[GroupListing]) -> list[dict[str, str]]:
    """The JSON of groups in a list."""
    return [
        {"group": g.group_id, "type": g.type, "state": g.state, "protocol_type": g.protocol_type}
        for g in groups
    ]


def offsets_report(found: Mapping[str, Sequence[GroupOffsetRow]]) -> Report:
    """Committed offsets, group by group; a group without rows prints nothing."""
    text: list[str] = []
    tables = []
    for group, rows in found.items():
        cells = [[group, *_offset_cells(row)] for row in rows]
        if not rows:
            continue
        widths = [
            _widest(cells, 0),
            _widest(cells, 1),
            *(10, 15, 15, 15),
            _widest(cells, 6),
            _widest(cells, 7),
        ]
        text += ["", *(_padded(row, widths) for row in (_OFFSET_COLUMNS, *cells))]
        tables.append(Table([c.capitalize() for c in _OFFSET_COLUMNS[1:]], _tail(cells), group))
    data = [{"group": group, **_offset_json(row)} for group, rows in found.items() for row in rows]
    return Report(COMMAND, data, text, tables)


def members_report(found: Mapping[str, Sequence[MemberRow]], *, verbose: bool) -> Report:
    """Members, group by group."""
    text: list[str] = []
    tables = []
    for group, rows in found.items():
        if not rows:
            continue
        instances = any(row.instance_id for row in rows)
        epochs = verbose and any(row.epoch is not None for row in rows)
        columns = [
            *("GROUP", "CONSUMER-ID"),
            *(["GROUP-INSTANCE-ID"] if instances else []),
            *("HOST", "CLIENT-ID", "#PARTITIONS"),
            *(_RECONCILIATION_COLUMNS if epochs else ["ASSIGNMENT"] if verbose else []),
        ]
        cells = [
            _member_cells(group, row, instances)
            + (_reconciliation(row) if epochs else [_assignment(row.assignment)] * verbose)
            for row in rows
        ]
        widths = [_widest([columns, *cells], i) for i in range(len(columns))]
        if epochs:
            widths[-3], widths[-1] = max(widths[-3], 20), max(widths[-1], 20)
        elif verbose:
            widths.pop()  # Kafka pads the last column when the assignment does not follow
        text += ["", *(_padded(row, widths) for row in (columns, *cells))]
        tables.append(Table([c.capitalize() for c in columns[1:]], _tail(cells), group))
    data = [{"group": group, **_member_json(row)} for group, rows in found.items() for row in rows]
    return Report(COMMAND, data, text, tables)


def states_report(groups: Sequence[GroupDescription], *, verbose: bool = False) -> Report:
    """One block for each group; with `verbose`, also the epochs of groups that have epochs."""
    text: list[str] = []
    rows = []
    for group in groups:
        where = f"{group.coordinator.host}:{group.coordinator.port} ({group.coordinator.broker_id})"
        row = [group.group_id, where, group.assignor, group.state, str(len(group.members))]
        if verbose and group.epoch is not None:
            text += ["", *_state_with_epochs(group, row)]
        else:
            widths = [max(25, len(where)), 25, 20, 15]
            text += ["", *(_padded(each, widths) for each in (_STATE_COLUMNS, row))]
        rows.append(row)
    data = [
        {
            "group": group.group_id,
            "coordinator": {
                "broker": group.coordinator.broker_id,
                "host": group.coordinator.host,
                "port": group.coordinator.port,
            },
            "assignment_strategy": group.assignor,
            "state": group.state,
            "type": group.type,
            "members": len(group.members),
            **_epochs_json(group),
        }
        for group in groups
    ]
    columns = ("Group", "Coordinator", "Assignment strategy", "State", "Members")
    return Report(COMMAND, data, text, [Table(columns, rows)] if rows else [])


def _state_with_epochs(group: GroupDescription, row: Sequence[str]) -> list[str]:
    where = row[1].replace(" ", "  ")
    columns = [*_STATE_COLUMNS[:-1], *_EPOCH_COLUMNS, _STATE_COLUMNS[-1]]
    cells = [row[0], where, *row[2:-1], str(group.epoch), str(group.target_epoch), row[-1]]
    widths = [max(_COLUMN_MIN, len(row[0])), max(25, len(where)), 20, 20, 15, 25]
    return [_padded(each, widths) for each in (columns, cells)]


def reset_report(found: Mapping[str, Mapping[TopicPartition, int]], *, executed: bool) -> Report:
    """New offsets, committed or only planned."""
    rows = [
        [group, tp.topic, str(tp.partition), str(offset)]
        for group, offsets in found.items()
        for tp, offset in offsets.items()
    ]
    text = ["", *(_padded(row, [30, 30, 10, 15]) for row in (_RESET_COLUMNS, *rows))]
    data = [
        {
            "group": group,
            **tp._asdict(),
            "new_offset": offset,
            "executed": executed,
        }
        for group, offsets in found.items()
        for tp, offset in offsets.items()
    ]
    title = "New offsets" if executed else "New offsets (dry run: nothing was changed)"
    return Report(COMMAND, data, text, [Table(("Group", "Topic", "Partition", "New"), rows, title)])


def deleted_offsets_report(summary: str, found: Mapping[TopicPartition, ApiError | None]) -> Report:
    """The outcome of each partition; a partition of -1 stands for an unknown topic."""
    rows = [
        [
            tp.topic,
            str(tp.partition) if tp.partition >= 0 else "Not Provided",
            "Successful" if error is None else f"Error: {error.message}",
        ]
        for tp, error in sorted(found.items(), key=lambda item: str(item[0]))
    ]
    text = [summary, "", *(_padded(row, [30, 15, 15]) for row in (_DELETE_COLUMNS, *rows))]
    data = [
        {
            "topic": tp.topic,
            "partition": tp.partition if tp.partition >= 0 else None,
            **error_json(error),
        }
        for tp, error in found.items()
    ]
    title = summary.strip()
    return Report(COMMAND, data, text, [Table(("Topic", "Partition", "Status"), rows, title)])


def deleted_groups_report(found: Mapping[str, ApiError | None]) -> Report:
    """The deleted groups, and the errors of groups that could not be deleted."""
    failed = {group: error for group, error in found.items() if error is not None}
    done = ", ".join(f"'{group}'" for group, error in found.items() if error is None)
    if not failed:
        text = [f"Deletion of requested consumer groups ({done}) was successful."]
    else:
        text = ["", "Error: Deletion of some consumer groups failed:"]
        text += [
            f"* Group '{group}' could not be deleted due to: {error.message}"
            for group, error in failed.items()
        ]
        if done:
            text += ["", f"These consumer groups were deleted successfully: {done}"]
    data = [
        {
            "group": group,
            "deleted": error is None,
            **error_json(error),
        }
        for group, error in found.items()
    ]
    return Report(COMMAND, data, text)


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells padded to their widths, with a space between. Cells without a width are not padded."""
    padded = [
        cell.ljust(widths[index]) if index < len(widths) else cell
        for index, cell in enumerate(cells)
    ]
    return " ".join(padded)


def _widest(rows: Sequence[Sequence[str]], index: int) -> int:
    return max([_COLUMN_MIN, *(len(row[index]) for row in rows)])


def _tail(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    return [row[1:] for row in rows]


def _shown(value: object) -> str:
    return NOTHING if value is None else str(value)


def _offset_cells(row: GroupOffsetRow) -> list[str]:
    return [
        row.partition.topic,
        str(row.partition.partition),
        _shown(row.current_offset),
        _shown(row.log_end_offset),
        _shown(row.lag),
        _shown(row.consumer_id),
        _shown(row.host),
        _shown(row.client_id),
    ]


def _offset_json(row: GroupOffsetRow) -> dict[str, Any]:
    return {
        **row.partition._asdict(),
        "current_offset": row.current_offset,
        "log_end_offset": row.log_end_offset,
        "lag": row.lag,
        "consumer_id": row.consumer_id,
        "host": row.host,
        "client_id": row.client_id,
    }


def _epochs_json(group: GroupDescription) -> dict[str, Any]:
    if group.epoch is None:
        return {}
    return {"group_epoch": group.epoch, "target_assignment_epoch": group.target_epoch}


def _member_cells(group: str, row: MemberRow, instances: bool) -> list[str]:
    return [
        group,
        row.consumer_id,
        *([row.instance_id or ""] if instances else []),
        row.host,
        row.client_id,
        str(len(row.assignment)),
    ]


def _reconciliation(row: MemberRow) -> list[str]:
    return [
        _shown(row.epoch),
        _current_assignment(row.assignment),
        _shown(row.target_epoch),
        _current_assignment(row.target),
    ]


def _assignment(partitions: Sequence[TopicPartition]) -> str:
    """`foo(0,1,10), bar(0)`."""
    shown = [f"{topic}({numbers})" for topic, numbers in _numbers(partitions).items()]
    return ", ".join(shown) or NOTHING


def _current_assignment(partitions: Sequence[TopicPartition]) -> str:
    """`bar:0;foo:0,1,10`, as Kafka 4 shows it."""
    shown = [f"{topic}:{numbers}" for topic, numbers in _numbers(partitions).items()]
    return ";".join(shown) or NOTHING


def _numbers(partitions: Sequence[TopicPartition]) -> dict[str, str]:
    """The partitions of each topic, as `0,1,10`."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return {topic: ",".join(map(str, numbers)) for topic, numbers in topics.items()}


def _member_json(row: MemberRow) -> dict[str, Any]:
    epochs: dict[str, Any] = {}
    if row.epoch is not None:
        epochs = {
            "epoch": row.epoch,
            "target_epoch": row.target_epoch,
            "target_assignment": _partitions_json(row.target),
        }
    return {
        "consumer_id": row.consumer_id,
        "group_instance_id": row.instance_id,
        "host": row.host,
        "client_id": row.client_id,
        "assignment": _partitions_json(row.assignment),
        **epochs,
    }


def _partitions_json(partitions: Sequence[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": partition} for topic, partition in partitions]
