"""A minimal broker: the baseline for kafkapy's throughput.

uvloop BufferedProtocol, header parse, CRC, append. One topic, one partition, no checks, no
replication, no groups. Serves what librdkafka needs: ApiVersions, Metadata, Produce, Fetch,
ListOffsets.

    python -m dev.bench.bare_loop PORT DIRECTORY
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop
from crc32c import crc32c

BATCH = struct.Struct(">qiibIhiqqqhii")
FIRST_16 = struct.Struct(">qii")
RECEIVE_BYTES = 1 << 20
MAX_FETCH_BYTES = 1 << 20
# api key, lowest and highest version: all before flexible encodings
SERVED = ((0, 3, 7), (1, 4, 4), (2, 1, 1), (3, 1, 1), (18, 0, 0))


class Log:
    """One file of batches, with the offset and the position of each."""

    def __init__(self, directory: Path) -> None:
        self.fd = os.open(directory / "bare.log", os.O_RDWR | os.O_CREAT, 0o600)
        self.size = 0
        self.end_offset = 0
        self.offsets: list[int] = []
        self.positions: list[int] = []

    def append(self, records: memoryview) -> int:
        """Check a batch's CRC and write the batch with its offset; returns its base offset."""
        header = BATCH.unpack_from(records)
        assert crc32c(records[21:]) == header[4]
        base = self.end_offset
        os.pwritev(self.fd, [FIRST_16.pack(base, header[1], 0), records[16:]], self.size)
        self.offsets.append(base)
        self.positions.append(self.size)
        self.size += len(records)
        self.end_offset = base + header[6] + 1
        return base

    def read(self, offset: int, max_bytes: int) -> bytes:
        if offset >= self.end_offset:
            return b""
        position = self.positions[bisect_right(self.offsets, offset) - 1]
        return os.pread(self.fd, max_bytes, position)


class Reader:
    """Reads the fields of a request in the old, fixed encoding."""

    def __init__(self, frame: memoryview, position: int) -> None:
        self.frame = frame
        self.position = position

    def take(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self.frame, self.position)
        self.position += struct.calcsize(layout)
        return int(value)

    def take_bytes(self, layout: str) -> memoryview:
        size = max(self.take(layout), 0)
        self.position += size
        return self.frame[self.position - size : self.position]


def string(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value


class BareLoop:
    """Request handlers: each takes (version, body) and returns the response body in parts, or
    None for no response."""

    def __init__(self, port: int, log: Log) -> None:
        self.port = port
        self.log = log
        self.topic = b"bench"
        self.handlers: dict[int, Callable[[int, Reader], list[bytes] | None]] = {
            0: self.produce,
            1: self.fetch,
            2: self.list_offsets,
            3: self.metadata,
            18: self.api_versions,
        }

    def produce(self, version: int, body: Reader) -> list[bytes] | None:
        body.take_bytes(">h")  # transactional id
        acks = body.take(">h")
        body.position += 4 + 4  # timeout; one topic
        name = bytes(body.take_bytes(">h"))
        body.position += 4  # one partition
        index = body.take(">i")
        base = self.log.append(body.take_bytes(">i"))
        start = struct.pack(">q", 0) if version >= 5 else b""
        row = struct.pack(">iihqq", 1, index, 0, base, -1) + start
        answer = [struct.pack(">i", 1), string(name), row, struct.pack(">i", 0)]
        return None if acks == 0 else answer

    def fetch(self, _: int, body: Reader) -> list[bytes]:
        body.position += 4 + 4 + 4 + 4 + 1  # replica, max wait, min bytes, max bytes, isolation
        if body.take(">i") == 0:
            return [struct.pack(">ii", 0, 0)]
        name = bytes(body.take_bytes(">h"))
        body.position += 4
        index, offset = body.take(">i"), body.take(">q")
        records = self.log.read(offset, min(body.take(">i"), MAX_FETCH_BYTES))
        end = self.log.end_offset
        row = struct.pack(">iihqqii", 1, index, 0, end, end, -1, len(records))
        return [struct.pack(">ii", 0, 1), string(name), row, records]

    def list_offsets(self, _: int, body: Reader) -> list[bytes]:
        body.position += 4 + 4
        name = bytes(body.take_bytes(">h"))
        body.position += 4
        index, timestamp = body.take(">i"), body.take(">q")
        offset = self.log.end_offset if timestamp == -1 else 0
        return [struct.pack(">i", 1), string(name), struct.pack(">iihqq", 1, index, 0, -1, offset)]

    def metadata(self, _: int, __: Reader) -> list[bytes]:
        broker = struct.pack(">ii", 1, 0) + string(b"127.0.0.1") + struct.pack(">ih", self.port, -1)
        head = struct.pack(">iih", 0, 1, 0) + string(self.topic)
        partition = struct.pack(">bihiiiiii", 0, 1, 0, 0, 0, 1, 0, 1, 0)
        return [broker, head, partition]

    def api_versions(self, version: int, _: Reader) -> list[bytes]:
        rows = [struct.pack(">hhh", *row) for row in SERVED]
        error = 35 if version else 0  # UNSUPPORTED_VERSION: the client retries with version 0
        return [struct.pack(">hi", error, len(rows)), *rows]

    def answer(self, frame: memoryview) -> list[bytes]:
        key, version, correlation_id, name_size = struct.unpack_from(">hhih", frame)
        parts = self.handlers[key](version, Reader(frame, 10 + max(name_size, 0)))
        if parts is None:
            return []
        return [struct.pack(">ii", 4 + sum(map(len, parts)), correlation_id), *parts]


class Connection(asyncio.BufferedProtocol):
    """Cuts request frames from one receive buffer of 4 MiB."""

    def __init__(self, broker: BareLoop) -> None:
        self._broker = broker
        self._buffer = memoryview(bytearray(4 * RECEIVE_BYTES))
        self._filled = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        at, parts = 0, []
        while self._filled - at >= 4:
            (size,) = struct.unpack_from(">i", self._buffer, at)
            if self._filled - at < 4 + size:
                break
            parts += self._broker.answer(self._buffer[at + 4 : at + 4 + size])
            at += 4 + size
        rest = self._filled - at
        if at and rest:
            self._buffer[:rest] = bytes(self._buffer[at : self._filled])
        self._filled = rest
        if parts:
            self._transport.writelines(parts)


async def serve(port: int, directory: Path) -> None:
    broker = BareLoop(port, Log(directory))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(broker), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
