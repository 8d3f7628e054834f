"""Workload of the clients: real log lines with keys and headers, and digests to compare them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain, cycle, islice
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FIRST_TIMESTAMP_MS = 1_700_000_000_000
TIMESTAMP_STEP_MS = 10
KEYS_PER_SOURCE = 50

Headers = tuple[tuple[str, bytes], ...]


class Row(NamedTuple):
    """A record to write."""

    key: bytes
    value: bytes
    headers: Headers
    timestamp: int


class Received(NamedTuple):
    """A record as a client gave it to us."""

    partition: int
    offset: int
    timestamp: int
    key: bytes
    value: bytes
    headers: Headers


def data_files() -> list[Path]:
    """The log files: $KAFKAPY_LOGHUB, ../shared/data/loghub, or the package's own sample."""
    folder = Path(os.environ.get("KAFKAPY_LOGHUB", ROOT.parent / "shared" / "data" / "loghub"))
    return sorted(folder.glob("*.log")) or [ROOT / "kafkapy" / "tools" / "sample.log"]


@cache
def _lines() -> tuple[tuple[str, bytes], ...]:
    """(source, line) taken in turn from each file; no empty lines, no carriage returns."""
    columns = []
    for path in data_files():
        lines = path.read_bytes().replace(b"\r", b"").split(b"\n")
        columns.append([(path.stem.split("_")[0], line) for line in lines if line.strip()])
    return tuple(chain.from_iterable(zip(*columns, strict=False)))


def rows(count: int, *, fixed_headers: bool = False) -> list[Row]:
    """`count` records; the lines come round again when they end. Timestamps only grow."""
    made = []
    for index, (source, line) in enumerate(islice(cycle(_lines()), count)):
        key = f"{source}-{index % KEYS_PER_SOURCE}".encode()
        headers: Headers = (("source", b"loghub"),)
        if not fixed_headers:
            headers = (("source", source.encode()), ("line", str(index).encode()))
        made.append(Row(key, line, headers, FIRST_TIMESTAMP_MS + index * TIMESTAMP_STEP_MS))
    return made


def murmur2(data: bytes) -> int:
    """Kafka's key hash (org.apache.kafka.common.utils.Utils.murmur2) as an unsigned integer."""
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = value * multiplier & mask ^ word
    if whole < len(data):
        tail = int.from_bytes(data[whole:], "little")
        value = (value ^ tail) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15


@cache
def partition_of(key: bytes, partitions: int) -> int:
    """Where Kafka's default partitioner puts a keyed record."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def digest(records: Iterable[Row | Received]) -> str:
    """SHA-256 of a sequence of keys, values and headers: equal only for equal sequences."""
    state = hashlib.sha256()
    for record in records:
        fields = [record.key, record.value]
        for name, value in record.headers:
            fields += [name.encode(), value]
        for field in fields:
            state.update(len(field).to_bytes(4, "big") + field)
        state.update(len(fields).to_bytes(4, "big"))
    return state.hexdigest()


def sent_digests(sent: Sequence[Row], partitions: int) -> dict[int, str]:
    """partition -> digest of what was sent to it, in the order of sending."""
    split: dict[int, list[Row]] = {partition: [] for partition in range(partitions)}
    for row in sent:
        split[partition_of(row.key, partitions)].append(row)
    return {partition: digest(part) for partition, part in split.items()}


def received_digests(received: Sequence[Received], partitions: int) -> dict[int, str]:
    """partition -> digest of what came from it, in the order of arrival."""
    split: dict[int, list[Received]] = {partition: [] for partition in range(partitions)}
    for record in received:
        split[record.partition].append(record)
    return {partition: digest(part) for partition, part in split.items()}
