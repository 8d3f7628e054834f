"""`share-groups` as text, table and JSON: the text of Kafka 4.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kafkapy.admin.groups import GroupListing
from kafkapy.admin.share_groups import ShareGroupDescription, ShareOffset
from kafkapy.cli.framework.output import Report, Table, error_json
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition, by_topic

COMMAND: Final = "share-groups"
NOTHING: Final = "-"
_COLUMN_MIN: Final = 15


def list_report(groups: Sequence[GroupListing], *, states: bool) -> Report:
    """Group ids alone, or with their states."""
    rows = [[g.group_id, g.state] for g in groups]
    text = [g.group_id for g in groups]
    if states:
        text = [_line(row, [_widest(rows, 0), 0]) for row in (["GROUP", "STATE"], *rows)]
    data = [{"group": g.group_id, "state": g.state} for g in groups]
    return Report(COMMAND, data, text, [Table(("Group", "State"), rows, "Groups")])


def offsets_report(
    found: Mapping[str, Mapping[TopicPartition, ShareOffset]], *, verbose: bool
) -> Report:
    """Start offsets and lag, group by group."""
    columns = ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"]
    if verbose:
        columns.insert(3, "LEADER-EPOCH")
    text: list[str] = []
    tables = []
    for group, offsets in found.items():
        rows = []
        for (topic, index), each in offsets.items():
            known = None if each.start_offset is None else each.leader_epoch
            epoch = [_shown(known)] if verbose else []
            shown = [_shown(each.start_offset), _shown(each.lag)]
            rows.append([group, topic, str(index), *epoch, *shown])
        if not rows:
            continue
        widths = [_widest(rows, 0), _widest(rows, 1), 10, *([13] if verbose else []), 13, 0]
        text += ["", *(_line(row, widths) for row in (columns, *rows))]
        tables.append(Table([c.capitalize() for c in columns[1:]], [r[1:] for r in rows], group))
    data = [
        {
            "group": group,
            **partition._asdict(),
            "leader_epoch": each.leader_epoch,
            "start_offset": each.start_offset,
            "lag": each.lag,
        }
        for group, offsets in found.items()
        for partition, each in offsets.items()
    ]
    return Report(COMMAND, data, text, tables)


def members_report(groups: Sequence[ShareGroupDescription], *, verbose: bool) -> Report:
    """Members, group by group."""
    columns = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"]
    if verbose:
        columns.insert(5, "MEMBER-EPOCH")
    text: list[str] = []
    tables = []
    for group in groups:
        rows = [
            [
                *(group.group_id, member.member_id, member.host, member.client_id),
                str(len(member.assignment)),
                *([str(member.epoch)] if verbose else []),
                _assignment(member.assignment),
            ]
            for member in group.members
        ]
        if not rows:
            continue
        widths = [_widest(rows, index) for index in range(4)]
        widths += [12, *([13] if verbose else []), 0]
        text += ["", *(_line(row, widths) for row in (columns, *rows))]
        title = group.group_id
        tables.append(Table([c.capitalize() for c in columns[1:]], [r[1:] for r in rows], title))
    data = [
        {
            "group": group.group_id,
            "consumer_id": member.member_id,
            "host": member.host,
            "client_id": member.client_id,
            "epoch": member.epoch,
            "assignment": [partition._asdict() for partition in member.assignment],
        }
        for group in groups
        for member in group.members
    ]
    return Report(COMMAND, data, text, tables)


def states_report(groups: Sequence[ShareGroupDescription], *, verbose: bool) -> Report:
    """One block for each group."""
    columns = ["GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS"]
    if verbose:
        columns[3:3] = ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"]
    text: list[str] = []
    rows = []
    for group in groups:
        where = f"{group.coordinator.host}:{group.coordinator.port}"
        where += f"  ({group.coordinator.broker_id})"
        epochs = [str(group.epoch), str(group.assignment_epoch)] if verbose else []
        row = [group.group_id, where, group.state, *epochs, str(len(group.members))]
        widths = [_widest([row], 0), max(25, len(where)), 15, *([12, 17] if verbose else []), 0]
        text += ["", *(_line(each, widths) for each in (columns, row))]
        rows.append(row)
    data = [
        {
            "group": group.group_id,
            "coordinator": {
                "broker": group.coordinator.broker_id,
                "host": group.coordinator.host,
                "port": group.coordinator.port,
            },
            "state": group.state,
            "group_epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "members": len(group.members),
        }
        for group in groups
    ]
    tables = [Table([c.capitalize() for c in columns], rows)] if rows else []
    return Report(COMMAND, data, text, tables)


def reset_report(group: str, offsets: Mapping[TopicPartition, int], *, executed: bool) -> Report:
    """New offsets, altered or only planned."""
    columns = ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
    rows = [[group, topic, str(index), str(new)] for (topic, index), new in offsets.items()]
    widths = [_widest(rows, 0), _widest(rows, 1), 10, 0]
    text = ["", *(_line(row, widths) for row in (columns, *rows))]
    data = [
        {"group": group, **partition._asdict(), "new_offset": new, "executed": executed}
        for partition, new in offsets.items()
    ]
    title = "New offsets" if executed else "New offsets (dry run: nothing was changed)"
    return Report(COMMAND, data, text, [Table([c.capitalize() for c in columns], rows, title)])


def deleted_offsets_report(found: Mapping[str, ApiError | None], refusal: str | None) -> Report:
    """The outcome of each topic; `refusal` is the reason if no offsets were deleted."""
    rows = [
        [topic, "Successful" if error is None else f"Error: {error.message}"]
        for topic, error in sorted(found.items())
    ]
    widths = [_widest(rows, 0), 0]
    head = [] if refusal is None else ["", f"Error: {refusal}"]
    text = [*head, "", *(_line(row, widths) for row in (["TOPIC", "STATUS"], *rows))]
    data = [{"topic": topic, **error_json(error)} for topic, error in found.items()]
    return Report(COMMAND, data, text, [Table(("Topic", "Status"), rows, refusal or "Offsets")])


def deleted_groups_report(found: Mapping[str, ApiError | None]) -> Report:
    """The deleted groups, and the errors of groups that could not be deleted."""
    failed = {group: error for group, error in found.items() if error is not None}
    done = ", ".join(f"'{group}'" for group, error in found.items() if error is None)
    text = [f"Deletion of requested share groups ({done}) was successful."]
    if failed:
        text = ["", "Error: Deletion of some share groups failed:"]
        text += [
            f"* Group '{group}' could not be deleted due to: {error.message}"
            for group, error in failed.items()
        ]
        if done:
            text += ["", f"These share groups were deleted successfully: {done}"]
    data = [
        {"group": group, "deleted": error is None, **error_json(error)}
        for group, error in found.items()
    ]
    return Report(COMMAND, data, text)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))


def _widest(rows: Sequence[Sequence[str]], index: int) -> int:
    return max([_COLUMN_MIN, *(len(row[index]) for row in rows)])


def _shown(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _assignment(partitions: Sequence[TopicPartition]) -> str:
    """`bar:0;foo:0,1,10`."""
    topics = by_topic(sorted(partitions))
    shown = [f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in topics.items()]
    return ";".join(shown) or NOTHING
