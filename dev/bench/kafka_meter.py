"""Cost of a load: processor time and memory of the brokers, and the bottleneck (Linux's /proc).

Clients run in processes of their own: measuring does not slow them down, and their threads can be
distinguished from the brokers'.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

SAMPLE_S = 0.25
LIMIT_S = 600.0
BOTTLENECK_SHARE = 0.85
"""A thread is the bottleneck if it runs on a processor for at least this share of the time."""

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """Resources that the brokers used together while a load ran.

    `busiest_*`: the share of one processor that the busiest thread had, in the median interval;
    `machine`: the busy share of all processors.
    """

    cpu_s: float
    resident_bytes: int
    busiest_client: float
    busiest_broker: float
    machine: float

    @property
    def limit(self) -> str:
        """Bottleneck: client, broker or both; else the machine's processors, or an empty string."""
        found = []
        if self.busiest_client >= BOTTLENECK_SHARE:
            found.append("client")
        if self.busiest_broker >= BOTTLENECK_SHARE:
            found.append("broker")
        if not found and self.machine >= BOTTLENECK_SHARE:
            found.append("machine")
        return ", ".join(found)


class ClientFailed(Exception):
    """A client ended with an error; the message has the end of its output."""


def cpu_s(pids: Iterable[int]) -> float:
    """User and system time of processes so far."""
    return sum(_ticks(Path(f"/proc/{pid}/stat")) for pid in pids) / _TICKS


def resident_bytes(pids: Iterable[int]) -> int:
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * _PAGE


def since(before_cpu_s: float, pids: Sequence[int]) -> Usage:
    """Usage of brokers that worked without a client; the bottleneck is not known."""
    return Usage(cpu_s(pids) - before_cpu_s, resident_bytes(pids), 0.0, 0.0, 0.0)


def memory(pid: int) -> tuple[int, int]:
    """Resident set and its proportional share (PSS) in bytes."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kilobytes = dict(re.findall(r"^(Rss|Pss):\s+(\d+) kB", text, re.MULTILINE))
    return int(kilobytes["Rss"]) * 1024, int(kilobytes["Pss"]) * 1024


def _ticks(stat: Path) -> int:
    # Behind the name in parentheses, which may hold blanks: state is field 0, utime 11, stime 12.
    fields = stat.read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _threads(pids: Iterable[int]) -> dict[str, int]:
    found = {}
    for pid in pids:
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            try:
                found[str(stat)] = _ticks(stat)
            except OSError:
                continue  # it ended since it was listed
    return found


class _Samples:
    """The intervals of one load."""

    def __init__(self, clients: Sequence[int], brokers: Sequence[int]) -> None:
        self._clients, self._brokers = clients, brokers
        self._before = _threads(clients), _threads(brokers), _busy_ticks()
        self.resident_bytes = resident_bytes(brokers)
        self.shares: list[tuple[float, float, float]] = []

    def take(self) -> None:
        now = _threads(self._clients), _threads(self._brokers), _busy_ticks()
        elapsed = SAMPLE_S * _TICKS
        client, broker = (
            max((ticks - old.get(key, 0) for key, ticks in new.items()), default=0) / elapsed
            for new, old in zip(now[:2], self._before[:2], strict=True)
        )
        machine = (now[2] - self._before[2]) / elapsed / (os.cpu_count() or 1)
        self.shares.append((client, broker, machine))
        self._before = now
        self.resident_bytes = max(self.resident_bytes, resident_bytes(self._brokers))


def _busy_ticks() -> int:
    user, nice, system, *rest = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return user + nice + system + sum(rest[2:4])


def run(commands: Sequence[Sequence[str]], brokers: Sequence[int]) -> tuple[list[str], Usage]:
    """Run clients side by side to their end. Returns the output of each, and the brokers' usage.

    Raises:
        ClientFailed: one of them ended with an error, or not within LIMIT_S.
    """
    before = cpu_s(brokers)
    processes = [
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands
    ]  # fmt: skip
    samples = _Samples([process.pid for process in processes], brokers)
    outputs = []
    try:
        for process in processes:
            outputs.append(_sampled(process, samples))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    used = cpu_s(brokers) - before
    middle = [median(column) for column in zip(*samples.shares, strict=True)] or [0.0, 0.0, 0.0]
    resident = max(samples.resident_bytes, resident_bytes(brokers))
    return outputs, Usage(used, resident, *middle)


def _sampled(process: subprocess.Popen[str], samples: _Samples) -> str:
    for _ in range(int(LIMIT_S / SAMPLE_S)):
        try:
            output, _ = process.communicate(timeout=SAMPLE_S)
        except subprocess.TimeoutExpired:
            samples.take()
            continue
        if process.returncode != 0:
            raise ClientFailed(
                f"{process.args!r} ended with {process.returncode}: {output[-2000:]}"
            )
        return output
    raise ClientFailed(f"{process.args!r} took longer than {LIMIT_S:.0f} s")
