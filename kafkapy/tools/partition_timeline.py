"""The history of one partition: events and leaders, from lines of the state-change logs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from kafkapy.tools.state_change_lines import parse_time

BAR_WIDTH: Final = 40
NO_LEADER: Final = "none"

_LOG4J: Final = re.compile(r"^\[[^\]]*\] [A-Z]+ (.*?)(?: \(state\.change\.logger\))?$")
_WRITER: Final = re.compile(
    r"^\[?(?P<role>Controller|Broker) (?:id=)?(?P<id>\d{1,10})(?: epoch[= ](?P<epoch>\d+))?\]?:? "
)
# Patterns of lines with a leader, in both formats; -1 means none.
_LEADER: Final = re.compile(
    r"\b(?:leader[=:] ?|with leader |current leader is )(-?\d{1,10})\b", re.IGNORECASE
)
_LEADER_EPOCH: Final = re.compile(r"\bleader ?epoch[=: ](\d{1,10})\b", re.IGNORECASE)
_ISR: Final = re.compile(
    r"\bISR:((?:-?\d+,?)+?)(?=,[A-Z]|\))|\bisr=(?:List\(|\[)([\d, ]*)|\bISR \[([\d, ]*)\]"
)
_ISR_BROKERS: Final = re.compile(r"isrWithBrokerEpoch=\S*?\((.*?)\), leaderRecovery")
_BROKER_ID: Final = re.compile(r"brokerId=(\d+)")
_LOST_LEADER: Final = re.compile(r"from \w+ to (?:OfflinePartition|NonExistentPartition)\b")
# Lines that change the leader. A controller's request, or its receipt at a broker, does not yet.
_CHANGES_LEADER: Final = re.compile(r"to OnlinePartition|state changed to \(|^Leader |^Follower ")
_BECAME_LEADER: Final = re.compile(r"^Leader \S+ ")


class Event(NamedTuple):
    """One line. `after_ms` is the time since the previous line. Leader and ISR are set if the line
    has them.
    """

    time: str
    after_ms: int
    writer: str
    leader: int | None
    isr: str | None
    message: str


class Leadership(NamedTuple):
    """A period with one leader, or without any. The last one ends with the last event."""

    since: str
    leader: str
    duration_ms: int


class Timeline(NamedTuple):
    """Events in order, and the leaders."""

    events: list[Event]
    leaderships: list[Leadership]


def timeline(lines: Iterable[tuple[bytes, bytes, str]]) -> Timeline:
    """Parse the merged lines of one partition."""
    events: list[Event] = []
    changes: list[tuple[str, str]] = []
    newest_epoch = -1
    for date, line, _ in lines:
        event = _event(date.decode(), line.decode(errors="replace"), events)
        events.append(event)
        epoch = _leader_epoch(event)
        if event.message.startswith("Follower ") and epoch <= newest_epoch:
            continue  # known already: brokers follow later than the leader leads
        leader = _new_leader(event)
        if leader is not None:
            newest_epoch = max(newest_epoch, epoch)
            if not changes or changes[-1][1] != leader:
                changes.append((event.time, leader))
    ends = [since for since, _ in changes[1:]] + ([events[-1].time] if events else [])
    return Timeline(
        events,
        [
            Leadership(since, leader, parse_time(end) - parse_time(since))
            for (since, leader), end in zip(changes, ends, strict=False)
        ],
    )


def _event(time: str, line: str, events: list[Event]) -> Event:
    found = _LOG4J.match(line)
    message = found[1] if found is not None else line
    writer = _WRITER.match(message)
    name = ""
    if writer is not None:
        epoch = f" epoch {writer['epoch']}" if writer["epoch"] else ""
        name = f"{writer['role']} {writer['id']}{epoch}"
        message = message[writer.end() :]
    after_ms = parse_time(time) - parse_time(events[-1].time) if events else 0
    return Event(time, after_ms, name, _leader(name, message), _isr(message), message)


def _leader(writer: str, message: str) -> int | None:
    if _BECAME_LEADER.match(message) and writer.startswith("Broker "):
        return int(writer.split()[1])
    found = _LEADER.search(message)
    return None if found is None else int(found[1])


def _leader_epoch(event: Event) -> int:
    found = _LEADER_EPOCH.search(event.message)
    return -1 if found is None else int(found[1])


def _isr(message: str) -> str | None:
    brokers = _ISR_BROKERS.search(message)
    if brokers is not None:
        return ",".join(_BROKER_ID.findall(brokers[1]))
    found = _ISR.search(message)
    if found is None:
        return None
    return next(group for group in found.groups() if group is not None).replace(" ", "")


def _new_leader(event: Event) -> str | None:
    """The leader from this event on, if the event has one."""
    if _LOST_LEADER.search(event.message):
        return NO_LEADER
    if event.leader is None or not _CHANGES_LEADER.search(event.message):
        return None
    return NO_LEADER if event.leader < 0 else str(event.leader)


def bar(duration_ms: int, whole_ms: int) -> str:
    """A bar for the share of `duration_ms` in `whole_ms`. It has at least one character."""
    return "#" * max(1, round(BAR_WIDTH * duration_ms / max(whole_ms, 1)))


def duration_text(duration_ms: int) -> str:
    """Two units at most: `2 h 5 min`, `1.500 s`, `7 ms`."""
    if duration_ms < 1000:
        return f"{duration_ms} ms"
    seconds = duration_ms // 1000
    if seconds < 60:
        return f"{seconds}.{duration_ms % 1000:03d} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"
