"""Parses lines of a `state-change.log`: their time and their partition.

Lines are bytes, as in the file. There are two formats. Until Kafka 1.0 a partition was
`[topic,partition]`, the only form that Kafka's own merger reads. Since then it is
`topic-partition`, and the line begins with its writer: `[Controller id=1 epoch=2]` or `[Broker
id=1]`. In the newer format `[0,1]` is a list of replicas, which Kafka's merger mistakes for topic
0, partition 1.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError

DATE: Final = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}")
_NUMBER: Final = rb"[0-9]{1,10}(?![0-9])"  # `int` refuses thousands of digits
_BRACKETED: Final = re.compile(rb"\[([a-zA-Z0-9._-]+),( )*(" + _NUMBER + rb")\]")
_NEW_FORMAT: Final = re.compile(rb"\[(?:Controller|Broker) id=")
_PARTITION: Final = re.compile(
    rb"(?:[Pp]artition|Leader|Follower|for|reassigned|replicas) "
    rb"([a-zA-Z0-9._-]+)-(" + _NUMBER + rb")(?=[.,:;)]?(?:\s|$)|,)"
    rb"|topicName='([^']+)', partitionIndex=(" + _NUMBER + rb")"
)
# Part of every match of _NAMED, and ten times faster to find. A date matches too.
_PARTITION_HINT: Final = re.compile(rb"-[0-9]|topicName=")
_DATED: Final = re.compile(rb"\[[0-9]{4}-[0-9]{2}-[0-9]{2} ")
_DATE_BYTES: Final = len("[yyyy-MM-dd")
_PARTITION_LIST: Final = re.compile(
    rb"replicas ((?:[a-zA-Z0-9._-]+-" + _NUMBER + rb",)+[a-zA-Z0-9._-]+-" + _NUMBER + rb")"
)
_TIME: Final = re.compile(r"(N)-(N)-(N) (N):(N):(N),(N)(?!\d)".replace("N", r"\d{1,9}"))

EARLIEST: Final = "0000-00-00 00:00:00,000"
LATEST: Final = "9999-12-31 23:59:59,999"


class Partition(NamedTuple):
    """A partition, as named in a line."""

    topic: bytes
    partition: int


def partitions_in(line: bytes) -> list[Partition]:
    """The partition of a line. Only a line about a list of offline replicas has several."""
    if _NEW_FORMAT.search(line) is None:
        found = _BRACKETED.search(line)
        if found is not None:
            return [Partition(found[1], int(found[3]))]
    if _PARTITION_HINT.search(line, _DATE_BYTES if _DATED.match(line) else 0) is None:
        return []
    found = _PARTITION.search(line)
    if found is None:
        return []
    listed = _PARTITION_LIST.search(line)
    if listed is not None:
        pairs = (word.rpartition(b"-") for word in listed[1].split(b","))
        return [Partition(topic, int(partition)) for topic, _, partition in pairs]
    return [Partition(found[1] or found[3], int(found[2] or found[4]))]


def parse_time(text: str) -> int:
    """Wall-clock milliseconds, for comparisons only. Fields may be out of range, as in Java.

    Raises:
        ConfigError: it does not begin with yyyy-MM-dd HH:mm:ss,SSS.
    """
    found = _TIME.match(text.replace('"', " ").strip())
    if found is None:
        raise ConfigError(f'Unparseable date: "{text}" (the form is yyyy-MM-dd HH:mm:ss,SSS)')
    year, month, day, hour, minute, second, ms = map(int, found.groups())
    return _minute(year, month, day, hour, minute) + second * 1000 + ms


def _minute(year: int, month: int, day: int, hour: int, minute: int) -> int:
    """The minute of a date. Month 13 is January of the next year, day 0 the last of the previous
    month.
    """
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    before_march = month < 3
    march_year = year - before_march
    day_of_year = (153 * (month + (9 if before_march else -3)) + 2) // 5 + day - 1
    days = 365 * march_year + march_year // 4 - march_year // 100 + march_year // 400 + day_of_year
    return ((days * 24 + hour) * 60 + minute) * 60_000


class TimeRange:
    """A range of dates, both ends inclusive. Lines are in the order of time, so each minute is
    computed once.
    """

    __slots__ = ("_end", "_minute", "_minute_ms", "_start", "is_unbounded")

    def __init__(self, start: str = EARLIEST, end: str = LATEST) -> None:
        """Raises ConfigError for an invalid time."""
        self._start, self._end = parse_time(start), parse_time(end)
        self.is_unbounded = (start, end) == (EARLIEST, LATEST)
        self._minute, self._minute_ms = b"", 0

    def contains(self, date: bytes) -> bool:
        """Whether the range contains a DATE."""
        minute = date[:16]
        if minute != self._minute:
            fields = (date[:4], date[5:7], date[8:10], date[11:13], date[14:16])
            self._minute, self._minute_ms = minute, _minute(*map(int, fields))
        at = self._minute_ms + int(date[17:19]) * 1000 + int(date[20:])
        return self._start <= at <= self._end


class LineFilter:
    """Selects lines, and returns the date by which they are merged."""

    __slots__ = ("_partitions", "_times", "_topic")

    def __init__(
        self,
        times: TimeRange | None = None,
        topic: str | None = None,
        partitions: Collection[int] = (),
    ) -> None:
        """`partitions` are partitions of `topic`; an empty collection means all."""
        self._times = times or TimeRange()
        self._topic = None if topic is None else topic.encode()
        self._partitions = frozenset(partitions)

    def date_of(self, line: bytes) -> bytes | None:
        """The line's date if it is in the range and about a selected partition, else None."""
        date = _date_at(line, 1) or _find_date(line)  # usually directly behind the bracket
        if date is None:
            return None
        text = date[0]
        # Of the default bounds, an invalid date such as 9999-99-99 can exceed only the end.
        if (not self._times.is_unbounded or text > b"9999") and not self._times.contains(text):
            return None
        if self._topic is None:
            # Fast path: most lines of the old format have a bracket.
            if _find_new_format(line) is None and _find_bracketed(line):
                return text
            return text if partitions_in(line) else None
        return text if any(map(self._selects, partitions_in(line))) else None

    def partition_of(self, line: bytes) -> Partition:
        """The first selected partition of a line that has one."""
        found = partitions_in(line)
        return found[0] if self._topic is None else next(filter(self._selects, found))

    def _selects(self, found: Partition) -> bool:
        if found.topic != self._topic:
            return False
        return not self._partitions or found.partition in self._partitions


_date_at = DATE.match
_find_date = DATE.search
_find_bracketed = _BRACKETED.search
_find_new_format = _NEW_FORMAT.search
