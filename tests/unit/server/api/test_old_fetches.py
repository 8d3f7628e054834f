"""Clients from before 0.11 fetch what they can read, or are told why not, as by Kafka 3.9.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.cluster_state import StopReplicaCommand, StopReplicaPartition
from kafkapy.common.errors import ErrorCode, LogDirFailure
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.protocol.headers import RequestHeader, decode_response, encode_response
from kafkapy.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.records import Record, iter_records
from kafkapy.replication.fetch_session import FetchPartition as SessionRow
from kafkapy.server.api import old_fetches
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import run_now
from kafkapy.storage.file_records import FileRegion
from tests.harness.cores.server_parts import Parts
from tests.harness.cores.znodes import run
from tests.harness.storage.partitions import partition_state

ROWS = [RecordData(b"k", b"v%d" % i * 50, 1000 + i, [("h", b"x")]) for i in range(3)]


class Shop:
    """Broker 1 leads both partitions of `t`; a client fetches in any version."""

    def __init__(self, directory: Path, **configs: str) -> None:
        self.parts = Parts(directory)
        self.parts.apply_leader_and_isr(partition_state(), partition_state(partition=1), **configs)

    def produce(self, codec: Codec = Codec.NONE, index: int = 0) -> int:
        batch = build_batch(ROWS, codec=codec)
        self.parts.replicas.append("t", index, batch, 1, 11)
        return len(batch)

    def fetch(
        self, version: int, *offsets: int, row_bytes: int = 1 << 20, max_bytes: int = 1 << 20
    ) -> list[tuple[ErrorCode, list[Record]]]:
        rows = [
            FetchPartition(partition=i, fetch_offset=offset, partition_max_bytes=row_bytes)
            for i, offset in enumerate(offsets)
        ]
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=max_bytes,
            topics=[FetchTopic(topic="t", partitions=rows)],
        )
        header = RequestHeader(1, version, 1, "test")
        context = RequestContext(header, "127.0.0.1", "PLAINTEXT")
        response = run_now(self.parts.fetch_paths.general(context, request))
        data = b"".join(map(bytes, encode_response(response, 1, version, 1)))
        answer: Any = decode_response(FetchResponse, version, memoryview(data)[4:])[1]
        found = []
        for row in answer.responses[0].partitions:
            records = bytes(row.records or b"")
            magics = {header.magic for _, header in iter_headers(records)}
            assert magics <= {0 if version < 2 else 1 if version < 4 else 2}
            found.append((ErrorCode(row.error_code), list(iter_records(records))))
        return found

    def one(self, version: int, offset: int = 0, **limits: int) -> tuple[ErrorCode, list[int]]:
        [(error, records)] = self.fetch(version, offset, **limits)
        return error, [record.offset for record in records]


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_an_old_client_reads_what_a_new_one_wrote(
    tmp_path: Path, version: int, codec: Codec
) -> None:
    shop = Shop(tmp_path)
    shop.produce(codec)
    [(error, records)] = shop.fetch(version, 0)
    assert error is ErrorCode.NONE
    assert [(r.offset, r.key, r.value) for r in records] == [
        (i, b"k", row.value) for i, row in enumerate(ROWS)
    ]
    times = [row.timestamp for row in ROWS] if version >= 2 else [-1] * 3
    assert [r.timestamp for r in records] == times
    assert shop.one(version, 3) == (ErrorCode.NONE, [])
    assert shop.one(version, 9) == (ErrorCode.OFFSET_OUT_OF_RANGE, [])


def test_long_spans_that_stay_in_their_file_are_converted_too(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    for _ in range(2000):
        shop.produce()
    error, offsets = shop.one(3)
    assert (error, offsets[:4]) == (ErrorCode.NONE, [0, 1, 2, 3])
    assert 3000 < len(offsets) < 6000, "no more than was asked for"


def test_one_answer_converts_so_much_and_some_of_each_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_fetches, "CONVERTED_BYTES_MAX", 1)
    shop = Shop(tmp_path)
    for _ in range(3):
        shop.produce(), shop.produce(index=1)
    assert [[r.offset for r in rows] for _, rows in shop.fetch(2, 0, 3)] == [[0, 1, 2], [3, 4, 5]]


def test_what_is_not_converted_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch of 55 MB was read whole, and 1 MB of it converted."""
    taken: list[int] = []
    take = FileRegion.take

    def counted(region: FileRegion, size: int) -> bytes:
        data = take(region, size)
        taken.append(len(data))
        return data

    monkeypatch.setattr(FileRegion, "take", counted)
    shop = Shop(tmp_path)
    for _ in range(2000):
        size = shop.produce()
    for room in (200_000, size - 1):
        taken.clear()
        monkeypatch.setattr(old_fetches, "CONVERTED_BYTES_MAX", room)
        error, offsets = shop.one(3)
        assert (error, offsets[:3]) == (ErrorCode.NONE, [0, 1, 2])
        assert sum(taken) == max(room, size)


@pytest.mark.parametrize("is_held", [True, False])
def test_a_partition_that_was_deleted_since_it_was_read_ends_no_connection(
    tmp_path: Path, is_held: bool
) -> None:
    """The rows of a large fetch are read in turns."""
    shop = Shop(tmp_path)
    for _ in range(2000):
        shop.produce()
    replicas = shop.parts.replicas
    wanted = SessionRow("t", ZERO_UUID, 0, 0, 1 << 20)
    row = replicas.get("t", 0).read(wanted, -1, 0, 1 << 20, True, 0)
    assert isinstance(row.records, FileRegion)
    if is_held:
        row.records.hold()
    stop = StopReplicaCommand(1, 1, 1, [StopReplicaPartition("t", 0, delete=True)])
    run(replicas.stop_replicas(stop))
    work = old_fetches.convert_records(replicas, 3, [row])
    assert work is not None
    [result] = run_now(work)
    if is_held:
        assert next(iter_records(result.records)).value == ROWS[0].value
    else:
        assert (result.error, result.size_bytes) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)


def test_records_that_were_truncated_since_they_were_read_are_no_fault_of_the_disk(
    tmp_path: Path,
) -> None:
    shop = Shop(tmp_path)
    for _ in range(2000):
        shop.produce()
    replicas = shop.parts.replicas
    partition = replicas.get("t", 0)
    wanted = SessionRow("t", ZERO_UUID, 0, 0, 1 << 20)
    row = partition.read(wanted, -1, 0, 1 << 20, True, 0)
    shop.parts.apply_leader_and_isr(partition_state(2, (1, 2), None, 1, 1))
    partition.log.truncate_to(3)
    work = old_fetches.convert_records(replicas, 3, [row])
    assert work is not None
    [result] = run_now(work)
    assert (result.error, result.size_bytes) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
    assert replicas.get("t", 0) is partition, "its directory is still served"


def test_the_limits_are_hard_until_version_3(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    size = shop.produce()
    for version in (0, 1, 2):
        assert shop.one(version, row_bytes=size - 1) == (ErrorCode.NONE, [])
        assert shop.one(version, row_bytes=size) == (ErrorCode.NONE, [0, 1, 2])
    assert shop.one(3, row_bytes=1) == (ErrorCode.NONE, [0, 1, 2])
    assert shop.one(3, max_bytes=1) == (ErrorCode.NONE, [0, 1, 2])


def test_zstd_is_refused_to_those_who_do_not_know_it(tmp_path: Path) -> None:
    refused = (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, [])
    by_producer = Shop(tmp_path / "a")
    by_producer.produce(Codec.ZSTD)
    assert by_producer.one(3) == refused
    assert by_producer.one(3, 3) == (ErrorCode.NONE, [])
    assert by_producer.one(4) == (ErrorCode.NONE, [0, 1, 2])
    by_broker = Shop(tmp_path / "b", compression_type="zstd")
    by_broker.produce()
    assert [by_broker.one(version) for version in (0, 3, 4, 9)] == [refused] * 4
    assert by_broker.one(10) == (ErrorCode.NONE, [0, 1, 2])


def test_a_topic_can_forbid_to_convert(tmp_path: Path) -> None:
    shop = Shop(tmp_path, message_downconversion_enable="false")
    shop.produce()
    for offset in (0, 3, 9):
        assert shop.one(3, offset) == (ErrorCode.UNSUPPORTED_VERSION, [])
    assert shop.one(4) == (ErrorCode.NONE, [0, 1, 2])


def test_a_failed_disk_is_no_leader_to_clients_that_know_no_storage_error(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.produce()
    shop.parts.replicas.log_dir_failed(LogDirFailure(str(tmp_path), "gone"))
    errors = [shop.one(version)[0] for version in (0, 3, 5, 6, 10)]
    old, new = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR
    assert errors == [old, old, old, new, new]
