"""The CSV of `consumer-groups --reset-offsets --export` and `--from-file` (`CsvUtils`).

One line a partition, no header: `topic,partition,offset` if one group is named on the command line,
`group,topic,partition,offset` otherwise.
"""

from __future__ import annotations

import re
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
_BLANKS: Final = " \t"
# A cell in quotes, with "" for a quote, or without quotes; then a comma or the end of the line.
_CELL: Final = re.compile(r'[ \t]*+(?:"((?:[^"]|"")*)"|([^",][^,]*|))[ \t]*(,|\Z)')
_SHOWN_MAX: Final = 100
_NEGATIVE: Final = re.compile(r"-0*[1-9][0-9]*")


class NegativeOffset(ConfigError):
    """An offset is negative. Only for this mistake in a file, Kafka's tool exits with 1."""


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
        NegativeOffset: an offset is negative.
    """
    try:
        # Editors may write a byte order mark. Without `utf-8-sig`, it would be in the first name.
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"Unable to read file {path}: {reason}") from error
    try:
        return parse_offsets(text, list(groups))
    except ConfigError as error:
        raise type(error)(f"{path}: {error}") from error


def parse_offsets(text: str, groups: list[str]) -> GroupOffsets:
    """Offsets by group. With exactly one group, lines with three columns belong to that group.

    Raises:
        ConfigError: a line is malformed, or has another form than the first; with its number.
        NegativeOffset: an offset is negative.
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
        shown = ",".join(cells)[:_SHOWN_MAX]
        raise ConfigError(f"line {number}: expected {form}, found '{shown}'")
    group, topic, partition, offset = full_row
    if not _is_number(partition, 31):
        raise ConfigError(f"line {number}: partition '{partition}' is not a number")
    if _NEGATIVE.fullmatch(offset):
        raise NegativeOffset(f"line {number}: Invalid negative offset {offset}")
    if not _is_number(offset, 63):
        raise ConfigError(f"line {number}: offset '{offset}' is not a number")
    return group, topic, int(partition), int(offset)


def _is_number(text: str, bits: int) -> bool:
    return len(text) <= _DIGITS_MAX and is_natural(text, bits)


def _cells(number: int, line: str) -> list[str]:
    """The cells of a line. Blanks in quotes belong to the cell, other blanks around it do not."""
    cells: list[str] = []
    at = 0
    while match := _CELL.match(line, at):
        quoted, plain, comma = match.groups()
        cells.append(plain.strip(_BLANKS) if quoted is None else quoted.replace('""', '"'))
        if not comma:
            return cells
        at = match.end()
    raise ConfigError(f"line {number}: the quotes of cell {len(cells) + 1} are wrong")


def _quote(text: str) -> str:
    if len(text) <= _UNQUOTED_MAX and min(text, default="-") >= _LOWEST_UNQUOTED:
        return text
    return '"' + text.replace('"', '""') + '"'
