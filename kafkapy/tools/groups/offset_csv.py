"""The CSV of `consumer-groups --reset-offsets --export` and `--from-file` (`CsvUtils`).

One line a partition, no header: `topic,partition,offset` if one group is named on the command line,
`group,topic,partition,offset` otherwise.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import is_natural
from kafkapy.common.topic_partition import TopicPartition

GroupOffsets = dict[str, dict[TopicPartition, int]]

# Jackson quotes text that is longer, or has a character before "-" in the order of code points.
_UNQUOTED_MAX: Final = 24
_LOWEST_UNQUOTED: Final = "-"
_DIGITS_MAX: Final = 19


def format_offsets(found: Mapping[str, Mapping[TopicPartition, int]], *, grouped: bool) -> str:
    """The lines. With `grouped`, each begins with the group."""
    lines = []
    for group, offsets in found.items():
        for (topic, partition), offset in offsets.items():
            cells = [_quote(topic), str(partition), str(offset)]
            lines.append(",".join([_quote(group), *cells] if grouped else cells))
    return "".join(f"{line}\n" for line in lines)


def load_offsets(path: str, groups: Iterable[str]) -> GroupOffsets:
    """Read a file for the groups of the command line; see `parse_offsets`.

    Raises:
        ConfigError: the file cannot be read, or a line is wrong.
    """
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"Unable to read file {path}: {reason}") from error
    try:
        return parse_offsets(text, list(groups))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse_offsets(text: str, groups: list[str]) -> GroupOffsets:
    """Offsets by group. With exactly one group, lines with three columns belong to that group.

    Raises:
        ConfigError: a line is malformed, or has another form than the first; with its number.
    """
    # Not `splitlines`: names of groups may contain characters that it treats as line ends.
    rows = [(number, _cells(number, line)) for number, line in enumerate(text.split("\n"), 1)]
    while rows and not any(rows[-1][1]):
        rows.pop()
    single_group = groups[0] if len(groups) == 1 and rows and len(rows[0][1]) == 3 else None
    found: GroupOffsets = {}
    for number, cells in rows:
        group, topic, partition, offset = _row(number, cells, single_group)
        found.setdefault(group, {})[TopicPartition(topic, partition)] = offset
    return found


def _row(number: int, cells: list[str], single_group: str | None) -> tuple[str, str, int, int]:
    full_row = cells if single_group is None else [single_group, *cells]
    form = "group,topic,partition,offset" if single_group is None else "topic,partition,offset"
    if len(full_row) != 4 or not all(full_row):
        raise ConfigError(f"line {number}: expected {form}, found '{','.join(cells)}'")
    group, topic, partition, offset = full_row
    if not _is_number(partition, 31):
        raise ConfigError(f"line {number}: partition '{partition}' is not a number")
    if not _is_number(offset, 63):
        raise ConfigError(f"line {number}: offset '{offset}' is not a number")
    return group, topic, int(partition), int(offset)


def _is_number(text: str, bits: int) -> bool:
    return len(text) <= _DIGITS_MAX and is_natural(text, bits)


def _cells(number: int, line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True), [])]
    except csv.Error as error:
        raise ConfigError(f"line {number}: {error}") from error


def _quote(text: str) -> str:
    if len(text) <= _UNQUOTED_MAX and min(text, default="-") >= _LOWEST_UNQUOTED:
        return text
    return '"' + text.replace('"', '""') + '"'
