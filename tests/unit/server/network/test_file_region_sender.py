"""Responses that are partly in files reach the client whole and in order, over real sockets."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kafkapy.server.network.file_region_sender import (
    FIRST_BYTES,
    WAITING_BYTES,
    FileRegionSender,
    has_region,
)
from kafkapy.server.network.tls_transport import TlsResources, TlsTransport
from kafkapy.storage.file_records import FilePool, FileRecords, FileRegion
from tests.harness.plugins.closing import Disk
from tests.harness.processes.waiting import LIMIT_S
from tests.harness.scripted.transports import FakeTransport
from tests.harness.security.certificates import can_make
from tests.harness.security.tls_contexts import TlsContexts

HIGH_WATER_BYTES = 1 << 20
CONTENT = random.Random(7).randbytes(3 << 20)


class Owner(asyncio.BufferedProtocol):
    """The part of a connection that its sender needs."""

    def __init__(self) -> None:
        self.received = bytearray(1000)
        self.transport: Any = None
        self.sender: FileRegionSender | None = None
        self.pauses = 0
        self.asked = asyncio.Event()
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.sender = FileRegionSender(transport, HIGH_WATER_BYTES)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.received

    def buffer_updated(self, nbytes: int) -> None:
        self.asked.set()

    def pause_writing(self) -> None:
        self.pauses += 1

    def resume_writing(self) -> None:
        assert self.sender is not None
        self.sender.send_more()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)


@pytest.fixture
def records(tmp_path: Path) -> Iterator[FileRecords]:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(CONTENT)
    found = FileRecords(FilePool(Disk()), str(path), len(CONTENT))
    yield found
    found.close_handle()


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    made: asyncio.AbstractEventLoop = request.param()
    yield made
    made.run_until_complete(asyncio.sleep(0))  # closing transports close their sockets
    made.close()


def exchange(
    loop: asyncio.AbstractEventLoop,
    act: Callable[[Owner, FileRegionSender], None],
    piece: int = 1 << 16,
    wanted: int | None = None,
) -> tuple[bytes, Owner]:
    """Run `act` at the server; return the bytes that a client reads.

    The client reads `piece` bytes at a time, until the server closes or it has `wanted` bytes.
    """

    async def run() -> tuple[bytes, Owner]:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        _, owner = await loop.create_connection(Owner, sock=ours)
        assert owner.sender is not None
        got = bytearray()
        with theirs:
            act(owner, owner.sender)
            while wanted is None or len(got) < wanted:
                try:
                    data = await asyncio.wait_for(loop.sock_recv(theirs, piece), LIMIT_S)
                except ConnectionResetError:
                    break
                if not data:
                    break
                got += data
            if not owner.transport.is_closing():
                owner.transport.abort()
            await asyncio.wait_for(owner.lost, LIMIT_S)
        return bytes(got), owner

    return loop.run_until_complete(run())


def test_bytes_and_regions_arrive_in_order_though_the_socket_is_full(
    loop: asyncio.AbstractEventLoop, records: FileRecords
) -> None:
    middle, end = FileRegion(records, 5, 2_000_000), FileRegion(records, 2_900_000, 100_000)
    response = [b"header", b"one", middle, b"two", end]

    def act(owner: Owner, sender: FileRegionSender) -> None:
        sender.send([b"before"])  # the transport may hold it until the end of the turn
        sender.send(response)
        assert owner.pauses  # or nothing waited here
        sender.send([b"after", FileRegion(records, 0, 70_000)])
        sender.close()

    got, owner = exchange(loop, act)
    assert got == (
        b"beforeheaderone" + CONTENT[5:2_000_005] + b"two" + CONTENT[2_900_000:3_000_000]
        + b"after" + CONTENT[:70_000]
    )  # fmt: skip
    assert len(middle) == len(end) == 0
    assert owner.pauses > 1


def test_what_comes_after_a_region_is_bytes_as_before(
    loop: asyncio.AbstractEventLoop, records: FileRecords
) -> None:
    def act(owner: Owner, sender: FileRegionSender) -> None:
        sender.send([FileRegion(records, 0, 100_000)])
        sender.send([b"x" * 500_000])
        sender.send([b"end"])
        sender.close()

    got, _ = exchange(loop, act)
    assert got == CONTENT[:100_000] + b"x" * 500_000 + b"end"


class TlsTransportWithLimit(FakeTransport):
    """Pauses its owner above the limit, as the transports of asyncio and uvloop do."""

    paused = False

    def get_extra_info(self, name: str) -> Any:
        return "TLS" if name == "sslcontext" else super().get_extra_info(name)

    def write(self, data: bytes) -> None:
        super().write(data)
        self.unsent += len(data)
        self.paused = self.unsent > self.high


def test_a_buffer_that_is_full_to_the_byte_stops_no_response(records: FileRecords) -> None:
    """The owner is called again only after a pause, which comes above the limit, not at it."""
    transport = TlsTransportWithLimit()
    transport.set_write_buffer_limits(2 * WAITING_BYTES)
    sender = FileRegionSender(transport, 2 * WAITING_BYTES)
    sender.send([FileRegion(records, 0, 5 * WAITING_BYTES)])
    while transport.paused:
        transport.unsent, transport.paused = 0, False
        sender.send_more()
    assert transport.sent == CONTENT[: 5 * WAITING_BYTES]


def test_a_region_that_fits_its_first_piece_needs_no_more(
    loop: asyncio.AbstractEventLoop, records: FileRecords
) -> None:
    def act(owner: Owner, sender: FileRegionSender) -> None:
        sender.send([b"header", FileRegion(records, 7, FIRST_BYTES), b"end"])
        sender.close()

    got, _ = exchange(loop, act)
    assert got == b"header" + CONTENT[7 : 7 + FIRST_BYTES] + b"end"


def test_the_transports_limit_is_what_it_was_when_all_is_sent(
    loop: asyncio.AbstractEventLoop, records: FileRecords
) -> None:
    def act(owner: Owner, sender: FileRegionSender) -> None:
        sender.send([FileRegion(records, 0, 2_000_000)])

    got, owner = exchange(loop, act, wanted=2_000_000)
    assert got == CONTENT[:2_000_000]
    pauses = owner.pauses

    def more(owner: Owner, sender: FileRegionSender) -> None:
        sender.send([FileRegion(records, 0, 70_000)])
        paused = owner.pauses
        owner.transport.write(b"y" * (HIGH_WATER_BYTES // 2))
        assert owner.pauses == paused
        owner.transport.write(b"y" * HIGH_WATER_BYTES)
        assert owner.pauses > paused

    exchange(loop, more, wanted=70_000 + HIGH_WATER_BYTES)
    assert pauses


def test_a_file_that_was_cut_ends_the_connection(
    loop: asyncio.AbstractEventLoop, records: FileRecords, caplog: pytest.LogCaptureFixture
) -> None:
    region = FileRegion(records, 0, 2_500_000)

    def act(owner: Owner, sender: FileRegionSender) -> None:
        sender.send([b"header", region])
        records.truncate(2_000_000)
        sender.send([b"never sent in its place"])

    got, owner = exchange(loop, act)
    assert CONTENT[:2_000_000].startswith(got.removeprefix(b"header"))
    assert owner.transport.is_closing()
    assert "00000000000000000000.log was cut before position 2500000" in caplog.text


def test_a_client_that_goes_away_ends_the_connection(
    loop: asyncio.AbstractEventLoop, records: FileRecords, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        _, owner = await loop.create_connection(Owner, sock=ours)
        assert owner.sender is not None
        owner.sender.send([FileRegion(records, 0, 3_000_000)])
        theirs.close()
        await asyncio.wait_for(owner.lost, LIMIT_S)

    loop.run_until_complete(run())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_nothing_goes_to_a_transport_that_is_closing(
    loop: asyncio.AbstractEventLoop, records: FileRecords
) -> None:
    """Its descriptor may be another connection's soon."""
    region = FileRegion(records, 0, 3_000_000)

    def act(owner: Owner, sender: FileRegionSender) -> None:
        owner.transport.abort()
        sender.send([region])

    got, _ = exchange(loop, act)
    assert got == b""
    assert len(region) == 3_000_000


def test_without_a_socket_of_the_kernel_regions_are_read(records: FileRecords) -> None:
    written = bytearray()

    class Transport:
        def get_extra_info(self, name: str) -> None:
            return None

        def is_closing(self) -> bool:
            return False

        def set_write_buffer_limits(self, high: int) -> None: ...

        def get_write_buffer_size(self) -> int:
            return 0

        def write(self, data: bytes) -> None:
            written.extend(data)

        def writelines(self, parts: list[bytes]) -> None:
            written.extend(b"".join(parts))

    sender = FileRegionSender(Transport(), HIGH_WATER_BYTES)
    sender.send([b"header", FileRegion(records, 1, 200_000), b"end"])
    assert bytes(written) == b"header" + CONTENT[1:200_001] + b"end"


def test_only_regions_are_regions(records: FileRecords) -> None:
    assert has_region([b"", FileRegion(records, 0, 1)])
    assert not has_region([b"", memoryview(b"")])


def test_over_tls_regions_go_by_the_transport(
    loop: asyncio.AbstractEventLoop, records: FileRecords, tmp_path: Path
) -> None:
    if not can_make("records over TLS"):
        return
    contexts = TlsContexts.make(tmp_path)
    owners: list[Owner] = []

    def new_owner() -> Owner:
        owners.append(Owner())
        return owners[-1]

    resources = TlsResources()

    def new_tls() -> TlsTransport:
        return TlsTransport(resources, lambda: contexts.broker, new_owner)

    async def run() -> bytes:
        server = await loop.create_server(new_tls, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=contexts.client, server_hostname="localhost"
        )
        writer.write(b"?")
        while not owners:
            await asyncio.sleep(0)
        await asyncio.wait_for(owners[0].asked.wait(), LIMIT_S)
        sender = owners[0].sender
        assert sender is not None
        for _ in range(4):
            sender.send([b"header", FileRegion(records, 0, len(CONTENT)), b"end"])
            await asyncio.sleep(0)
        assert owners[0].pauses  # it does not all wait in memory
        assert owners[0].transport.get_write_buffer_size() < 2 * HIGH_WATER_BYTES
        got = await asyncio.wait_for(reader.readexactly(4 * (len(CONTENT) + 9)), LIMIT_S)
        sender.close()
        assert await asyncio.wait_for(reader.read(), LIMIT_S) == b""
        writer.close()
        server.close()
        return got

    try:
        assert loop.run_until_complete(run()) == 4 * (b"header" + CONTENT + b"end")
    finally:
        resources.close()
