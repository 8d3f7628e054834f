"""The small text files of a log directory: checkpoints, metadata and the clean-shutdown marker.

Every file is written to `<file>.tmp`, forced to disk and renamed, so it has the old or the new
content, never a mixture. A file in any other format is damaged: reading it raises MalformedFile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

import orjson

from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.common.java_numbers import is_integer, is_natural
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.storage.filesystem import FileSystem, read_file, write_atomically

_VERSION: Final = "0"


class MalformedFile(KafkapyError):
    """A small file is not in the expected format."""


class MetaProperties(NamedTuple):
    """The owner of a log directory. None means that the file has no such value."""

    broker_id: int | None
    cluster_id: str | None


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """An offset checkpoint: version, count, `<topic> <partition> <offset>` lines."""
    return _encode_rows([f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items()])


def write_offsets(fs: FileSystem, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace an offset checkpoint, durably."""
    write_atomically(fs, path, encode_offsets(offsets))


def read_offsets(fs: FileSystem, path: str) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint; empty if the file is absent or empty.

    Raises:
        MalformedFile: names the file and the line.
    """
    offsets: dict[TopicPartition, int] = {}
    for row in _read_rows(fs, path):
        match row.split(" "):
            case [topic, partition, offset] if is_natural(partition) and is_integer(offset, 63):
                offsets[TopicPartition(topic, int(partition))] = int(offset)
            case _:
                raise MalformedFile(f"{path} has the malformed line '{row}'")
    return offsets


def encode_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    """`leader-epoch-checkpoint`: `<epoch> <start offset>` lines (`LeaderEpochCheckpointFile`)."""
    return _encode_rows([f"{epoch} {start}" for epoch, start in entries])


def read_epochs(fs: FileSystem, path: str) -> list[tuple[int, int]]:
    """The entries of a leader-epoch checkpoint; empty if the file is absent or empty.

    Raises:
        MalformedFile: names the file and the line.
    """
    entries: list[tuple[int, int]] = []
    for row in _read_rows(fs, path):
        match row.split(" "):
            case [epoch, start] if is_natural(epoch) and is_natural(start, 63):
                entries.append((int(epoch), int(start)))
            case _:
                raise MalformedFile(f"{path} has the malformed line '{row}'")
    return entries


def _encode_rows(rows: list[str]) -> bytes:
    return "\n".join([_VERSION, str(len(rows)), *rows, ""]).encode()


def _read_rows(fs: FileSystem, path: str) -> list[str]:
    text = _read_text(fs, path)
    if not text:  # Kafka makes the file empty and fills it later (`CheckpointReadBuffer`)
        return []
    version, _, rest = text.partition("\n")
    count, _, rest = rest.partition("\n")
    rows = rest.removesuffix("\n").split("\n") if rest else []
    if version != _VERSION:
        raise MalformedFile(f"{path} has the version '{version}', not {_VERSION}")
    if not is_natural(count) or int(count) != len(rows):
        raise MalformedFile(f"{path} says '{count}' entries and has {len(rows)}")
    return rows


def _read_text(fs: FileSystem, path: str) -> str | None:
    try:
        return read_file(fs, path).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise MalformedFile(f"{path} is not text: {error}") from error


def encode_partition_metadata(topic_id: Uuid) -> bytes:
    """`partition.metadata`: two lines, the last without a newline (`PartitionMetadataFile`)."""
    return f"version: 0\ntopic_id: {topic_id}".encode()


def read_partition_metadata(fs: FileSystem, path: str) -> Uuid | None:
    """The topic id of a partition directory; None if there is no file.

    Raises:
        MalformedFile: the file has no topic id.
    """
    text = _read_text(fs, path)
    if text is None:
        return None
    fields = dict(line.partition(": ")[::2] for line in text.splitlines())
    try:
        return Uuid.parse(fields["topic_id"].strip())
    except (KeyError, ConfigError) as error:
        raise MalformedFile(f"{path} names no topic id: {error}") from error


def write_meta_properties(
    fs: FileSystem, path: str, broker_id: int, cluster_id: str, now_ms: int
) -> None:
    """`meta.properties` of a broker in ZooKeeper mode: version 0, as Java's `Properties.store`."""
    date = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    lines = ("#", f"#{date}", f"broker.id={broker_id}", "version=0", f"cluster.id={cluster_id}", "")
    write_atomically(fs, path, "\n".join(lines).encode())


def read_meta_properties(fs: FileSystem, path: str) -> MetaProperties | None:
    """Read the owner of a log directory; None if there is no file.

    Raises:
        ConfigError: the file is not of version 0, so another kind of broker owns the directory.
    """
    text = _read_text(fs, path)
    if text is None:
        return None
    pairs = (line.strip() for line in text.splitlines())
    fields = {
        key.strip(): value.strip().replace("\\", "")
        for key, _, value in (line.partition("=") for line in pairs if line[:1] not in ("#", "!"))
    }
    if fields.get("version") != _VERSION:
        raise ConfigError(
            f"{path} has version '{fields.get('version', '')}': a broker in ZooKeeper mode needs 0"
        )
    broker_id = fields.get("broker.id")
    if broker_id is not None and not is_integer(broker_id):
        raise ConfigError(f"{path} has the broker.id '{broker_id}', which is not a number")
    return MetaProperties(int(broker_id) if broker_id else None, fields.get("cluster.id"))


def write_clean_shutdown(fs: FileSystem, path: str, broker_epoch: int) -> None:
    """Write `.kafka_cleanshutdown`: the logs of the directory need no recovery at the next
    start.
    """
    write_atomically(fs, path, orjson.dumps({"version": 0, "brokerEpoch": broker_epoch}))


def read_clean_shutdown(fs: FileSystem, path: str) -> int | None:
    """The broker epoch in the marker, -1 if it has none; None if there is no marker."""
    text = _read_text(fs, path)
    if text is None:
        return None
    try:
        found = orjson.loads(text).get("brokerEpoch", -1)
    except (orjson.JSONDecodeError, AttributeError):
        # Only its presence matters: Kafka wrote it empty before version 3.8.
        return -1
    return found if isinstance(found, int) else -1
