"""A log made in one expression: `LogBuilder(path).append(count=3).roll().append()`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.control import end_transaction_marker
from kafkapy.record.records import Record, iter_records
from kafkapy.storage.filesystem import FileSystem
from kafkapy.storage.log_append import AppendOrigin, LogAppendInfo
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.unified_log import UnifiedLog
from tests.harness.cores.ports import NOW_MS, ManualClock, SeededRandom
from tests.harness.plugins.closing import Disk

TP = TopicPartition("orders", 0)
TOPIC_ID = Uuid(bytes(range(16)))
CLUSTER_ID = "abcdefghijklmnopqrstuv"


def row(key: str | None = "k", value: str | None = "v", timestamp: int = NOW_MS) -> RecordData:
    """A record of texts."""
    return RecordData(
        None if key is None else key.encode(),
        None if value is None else value.encode(),
        timestamp,
    )


class LogBuilder:
    """One partition's log in a log directory of its own; keyword arguments are topic configs."""

    def __init__(
        self,
        root: Path | str,
        fs: FileSystem | None = None,
        clock: ManualClock | None = None,
        seed: int = 0,
        topic_partition: TopicPartition = TP,
        **configs: str,
    ) -> None:
        self.root = str(root)
        self.fs = fs or Disk()
        self.clock = clock or ManualClock()
        self.configs = {name.replace("_", "."): value for name, value in configs.items()}
        self.topic_partition = topic_partition
        self.leader_epoch = 0
        self._seed = seed
        self.open()

    def open(self) -> LogBuilder:
        """Start a log manager on the directory; the log is created if it does not exist."""
        self.manager = LogManager(
            self.fs, [self.root], {}, self.clock, SeededRandom(self._seed), open_files_max=8
        )
        self.manager.open()
        self.manager.claim(1, CLUSTER_ID)
        self.manager.load({self.topic_partition.topic: self.configs})
        self.log = self.manager.get_or_create_log(
            self.topic_partition, TOPIC_ID, self.configs, True
        )
        return self

    def stop(self) -> LogBuilder:
        """A clean shutdown."""
        self.manager.shutdown()
        self._expect_closed()
        return self

    def kill(self) -> LogBuilder:
        """Abandon the logs as kill -9 does: files as they are, no marker, no lock."""
        for log in self.manager.logs.values():
            log.abandon()
        self.manager.unlock()
        self._expect_closed()
        return self

    def _expect_closed(self) -> None:
        """Check that no files are open: a broker without logs has none."""
        if isinstance(self.fs, Disk):
            assert self.fs.open_files() == [], self.fs.open_files()

    def reopen(self, clean: bool = True) -> LogBuilder:
        (self.stop if clean else self.kill)()
        return self.open()

    @property
    def directory(self) -> str:
        return self.log.directory

    def path(self, name: str) -> Path:
        return Path(self.log.directory) / name

    def files(self) -> list[str]:
        """Names in the partition's directory, in order."""
        return sorted(entry.name for entry in self.fs.list(self.directory))

    def add(
        self, records: bytes, origin: AppendOrigin = AppendOrigin.CLIENT, committed: bool = True
    ) -> LogAppendInfo:
        """Append a batch as leader; the high watermark follows if it is `committed`."""
        info = self.log.append_as_leader(records, self.leader_epoch, self.clock.now_ms, origin)
        if committed:
            self.log.update_high_watermark(self.log.log_end_offset)
        return info

    def append(
        self,
        *rows: RecordData,
        count: int = 1,
        codec: Codec = Codec.NONE,
        value_bytes: int = 20,
        committed: bool = True,
    ) -> LogBuilder:
        """Append one batch of `rows`, or `count` rows whose values are their offsets."""
        chosen: Sequence[RecordData] = rows
        if not rows:
            end = self.log.log_end_offset
            chosen = [
                row(f"k{end + i}", f"{end + i}".ljust(value_bytes), self.clock.now_ms + end + i)
                for i in range(count)
            ]
        self.add(build_batch(chosen, codec=codec), committed=committed)
        return self

    def produce(
        self,
        producer_id: int,
        sequence: int,
        count: int = 1,
        producer_epoch: int = 0,
        is_transactional: bool = False,
    ) -> LogAppendInfo:
        """Append a batch of an idempotent or transactional producer."""
        rows = [row("p", f"{producer_id}/{sequence + i}", self.clock.now_ms) for i in range(count)]
        return self.add(
            build_batch(
                rows,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=sequence,
                is_transactional=is_transactional,
            )
        )

    def end_transaction(
        self, producer_id: int, commit: bool, producer_epoch: int = 0, coordinator_epoch: int = 0
    ) -> LogAppendInfo:
        """Append a marker as the transaction coordinator does."""
        marker = end_transaction_marker(
            commit=commit,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=self.clock.now_ms,
        )
        return self.add(marker, AppendOrigin.COORDINATOR)

    def roll(self) -> LogBuilder:
        self.log.roll(self.clock.now_ms)
        return self

    def bases(self) -> list[int]:
        """The base offsets of the segments."""
        return [segment.base_offset for segment in self.log.segments]

    def records(self) -> list[Record]:
        return read_all(self.log)

    def values(self) -> list[str]:
        return [(record.value or b"").decode() for record in self.records()]


def read_all(log: UnifiedLog, max_bytes: int = 1_000_000) -> list[Record]:
    """Every record of a log, by reads from its start to its end; markers left out."""
    found: list[Record] = []
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        info = log.read(offset, max_bytes, end, True)
        if not info.records:
            break
        found += [record for record in iter_records(info.records) if record.offset >= offset]
        offset = next_offset(info.records)
    return found


def next_offset(records: bytes) -> int:
    """The offset after the last whole batch that a read returned."""
    return [header for _, header in iter_headers(records)][-1].next_offset
