"""A connection answers in order, whatever ends first, and does not read from who does not read."""

from __future__ import annotations

import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkapy.protocol.framing import ReceiveBuffers
from kafkapy.protocol.headers import RequestHeader
from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network.connection import (
    FLUSH_BYTES,
    FRAMES_A_TURN,
    PARKED_REQUESTS_MAX,
    QUEUED_BYTES_MAX,
    Connection,
)
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.server.requests.outcomes import CLOSE_CONNECTION, NO_RESPONSE, Pending
from kafkapy.storage.file_records import FilePool, FileRecords, FileRegion
from tests.harness.cores.paused_loops import fake_timers
from tests.harness.cores.server_parts import FakeTimers
from tests.harness.plugins.closing import Disk
from tests.harness.scripted.transports import FakeTransport


class FakeDispatcher:
    """Hands each request to the outcome that the test prepared for its correlation id."""

    def __init__(self) -> None:
        self.outcomes: dict[int, Any] = {}
        self.seen: list[int] = []

    def dispatch(self, connection: Connection, request: Any) -> Any:
        correlation_id = request.header.correlation_id
        self.seen.append(correlation_id)
        return self.outcomes.get(correlation_id, [b"<%d>" % correlation_id])

    def encode(self, header: RequestHeader, response: Any) -> Any:
        return response


def frame(correlation_id: int) -> bytes:
    body = (18).to_bytes(2, "big") + bytes(2) + correlation_id.to_bytes(4, "big") + b"\xff\xff"
    return len(body).to_bytes(4, "big") + body


class Client:
    """One connection with everything around it fake."""

    def __init__(self, table: ConnectionTable | None = None, host: str = "10.0.0.1") -> None:
        self.now_ms = 0
        self.dispatcher = FakeDispatcher()
        self.table = ConnectionTable(KafkaConfig({})) if table is None else table
        self.transport = FakeTransport(host)
        self.connection = Connection(
            "PLAINTEXT",
            self.dispatcher,  # type: ignore[arg-type]
            self.table,
            ServerConnection(1000, ReceiveBuffers(4096)),
            lambda: self.now_ms,
        )
        self.connection.connection_made(self.transport)

    def send(self, data: bytes) -> None:
        while data:
            buffer = self.connection.get_buffer(-1)
            n = min(len(buffer), len(data))
            buffer[:n] = data[:n]
            data = data[n:]
            self.connection.buffer_updated(n)


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> FakeTimers:
    """The turns of connections that wait for one."""
    return fake_timers(monkeypatch)


def take_all(turns: FakeTimers) -> None:
    while turns.delays_s:
        turns.fire()


def test_other_clients_are_served_between_the_requests_of_a_client_that_sends_many(
    turns: FakeTimers,
) -> None:
    """No login is needed to send 13,000 requests at once, which others waited for."""
    many, other = Client(), Client()
    many.send(b"".join(map(frame, range(100))))
    assert many.dispatcher.seen == list(range(FRAMES_A_TURN))
    assert not many.transport.reading
    assert turns.delays_s == [0]
    turns.fire()
    assert many.dispatcher.seen == list(range(2 * FRAMES_A_TURN))
    other.send(frame(7))
    assert other.transport.sent == b"<7>"
    take_all(turns)
    assert many.transport.sent == b"".join(b"<%d>" % number for number in range(100))
    assert many.transport.reading


def test_a_client_that_disconnects_before_its_turn_is_left_alone(turns: FakeTimers) -> None:
    many = Client()
    many.send(b"".join(map(frame, range(100))))
    many.connection.connection_lost(None)
    take_all(turns)
    assert many.dispatcher.seen == list(range(FRAMES_A_TURN))


def test_frames_behind_a_fetch_that_waits_need_no_turn(turns: FakeTimers) -> None:
    many, fetch = Client(), Pending(blocks=True)
    many.dispatcher.outcomes = {0: fetch}
    many.send(b"".join(map(frame, range(3))))
    assert turns.delays_s == []
    fetch.complete([b"<0>"])
    assert many.transport.sent == b"<0><1><2>"


def test_answers_leave_in_request_order_whatever_completes_first(client: Client) -> None:
    first, third = Pending(), Pending()
    client.dispatcher.outcomes = {1: first, 3: third}
    client.send(frame(1) + frame(2) + frame(3) + frame(4))
    assert client.dispatcher.seen == [1, 2, 3, 4]
    third.complete([b"<3>"])
    assert client.transport.sent == b""
    first.complete([b"<1>"])
    assert client.transport.sent == b"<1><2><3><4>"


def test_acks_0_sends_nothing_and_holds_nobody_up(client: Client) -> None:
    client.dispatcher.outcomes = {1: NO_RESPONSE}
    client.send(frame(1) + frame(2))
    assert client.transport.sent == b"<2>"


def test_a_parked_fetch_holds_the_requests_behind_it(client: Client) -> None:
    fetch = Pending(blocks=True)
    client.dispatcher.outcomes = {1: fetch}
    client.send(frame(1) + frame(2))
    assert client.dispatcher.seen == [1]
    assert not client.transport.reading
    # The frame that waits must not lie in the buffer that another connection now fills.
    client.connection.get_buffer(-1)[:] = bytes(4096)
    fetch.complete([b"<1>"])
    assert client.transport.sent == b"<1><2>"
    assert client.transport.reading


def test_requests_that_wait_take_little_more_than_their_bytes(
    client: Client, turns: FakeTimers
) -> None:
    """Any client can have them wait, before its login too, and they may be tiny."""
    client.connection.pause_writing()
    received = frame(1) * (4000 // len(frame(1)))
    tracemalloc.start()
    client.send(received)
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken_bytes < 8 * len(received)
    client.connection.resume_writing()
    take_all(turns)
    assert len(client.dispatcher.seen) == len(received) // len(frame(1))


def test_a_client_that_does_not_read_is_not_read_from(client: Client) -> None:
    client.connection.pause_writing()
    client.send(frame(1) + frame(2))
    assert client.dispatcher.seen == []
    assert not client.transport.reading
    client.connection.resume_writing()
    assert client.transport.sent == b"<1><2>"
    assert client.transport.reading


@pytest.mark.parametrize("first_waits", [False, True])
def test_pipelined_requests_with_more_than_a_megabyte_of_responses_are_all_answered(
    client: Client, turns: FakeTimers, first_waits: bool
) -> None:
    """A connection whose client read all at once never handled the requests after the megabyte."""
    response = bytes(FLUSH_BYTES)
    count = 3 * QUEUED_BYTES_MAX // FLUSH_BYTES
    first = Pending()
    client.dispatcher.outcomes = {number: [response] for number in range(count)}
    if first_waits:
        client.dispatcher.outcomes[0] = first
    client.send(b"".join(map(frame, range(count))))
    take_all(turns)
    first.complete([response])
    take_all(turns)
    assert client.dispatcher.seen == list(range(count))
    assert len(client.transport.sent) == count * FLUSH_BYTES
    assert client.transport.reading


def test_records_in_a_file_leave_in_their_turn(client: Client, tmp_path: Path) -> None:
    content = bytes(range(256)) * 512
    records = FileRecords.create(FilePool(Disk()), str(tmp_path / "f.log"))
    records.append([content], len(content))
    first = Pending()
    client.dispatcher.outcomes = {1: first, 2: [b"<2>", FileRegion(records, 0, len(content))]}
    client.send(frame(1) + frame(2) + frame(3))
    assert client.transport.sent == b""
    first.complete([b"<1>"])
    assert client.transport.sent == b"<1><2>" + content + b"<3>"
    client.connection.close()
    assert client.transport.closing


def test_records_that_wait_for_their_turn_are_those_of_their_file(
    client: Client, tmp_path: Path
) -> None:
    """The topic may be deleted meanwhile, and made again."""
    content = bytes(range(256)) * 512
    path = tmp_path / "f.log"
    records = FileRecords.create(FilePool(Disk()), str(path))
    records.append([content], len(content))
    first = Pending()
    client.dispatcher.outcomes = {1: first, 2: [b"<2>", FileRegion(records, 0, len(content))]}
    client.send(frame(1) + frame(2))
    records.close_handle()
    path.unlink()
    path.write_bytes(bytes(len(content)))
    first.complete([b"<1>"])
    assert client.transport.sent == b"<1><2>" + content


def test_records_that_cannot_be_held_end_the_connection(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = FileRecords(FilePool(Disk()), str(tmp_path / "gone.log"), 100_000)
    client.dispatcher.outcomes = {1: Pending(), 2: [FileRegion(records, 0, 100_000)]}
    client.send(frame(1) + frame(2))
    assert client.transport.closing
    assert "its records wait, and" in caplog.text


class OneHeldFile(FilePool):
    """A pool that lets one file be held."""

    def __init__(self) -> None:
        super().__init__(Disk())
        self.held_max = 1


@pytest.mark.parametrize("is_deleted", [False, True])
def test_records_that_are_not_held_are_sent_while_their_log_has_them_and_never_others(
    client: Client, tmp_path: Path, is_deleted: bool
) -> None:
    """Clients that do not read have taken all the descriptors that there are to hold files by."""
    pool, regions, content = OneHeldFile(), [], bytes(range(256)) * 512
    paths = [tmp_path / f"{number}.log" for number in range(3)]
    files = [FileRecords.create(pool, str(path)) for path in paths]
    for records in files:
        records.append([content], len(content))
        regions.append(FileRegion(records, 0, len(content)))
    regions[0].hold()
    first = Pending()
    client.dispatcher.outcomes = {1: first, 2: [b"<2>", *regions[1:]]}
    client.send(frame(1) + frame(2))
    assert not client.transport.closing
    if is_deleted:
        files[2].close_handle()
        paths[2].write_bytes(bytes(len(content)))
    else:
        files[2].close_descriptor()  # for another file's sake
    first.complete([b"<1>"])
    assert client.transport.aborted is is_deleted
    assert client.transport.sent == b"<1><2>" + content * (1 if is_deleted else 2)


def test_at_most_so_many_requests_are_parked_at_once(client: Client, turns: FakeTimers) -> None:
    parked = {i: Pending() for i in range(PARKED_REQUESTS_MAX + 10)}
    client.dispatcher.outcomes = dict(parked)
    client.send(b"".join(frame(i) for i in parked))
    take_all(turns)
    assert len(client.dispatcher.seen) == PARKED_REQUESTS_MAX
    for i, pending in parked.items():
        pending.complete([b"<%d>" % i])
    assert client.transport.sent == b"".join(b"<%d>" % i for i in parked)


def test_an_error_with_acks_0_closes_the_connection(client: Client) -> None:
    client.dispatcher.outcomes = {1: CLOSE_CONNECTION}
    client.send(frame(1) + frame(2))
    assert client.transport.closing
    assert client.dispatcher.seen == [1]


def test_answers_that_are_due_leave_before_the_connection_closes(client: Client) -> None:
    """A transport that is closing sends nothing more."""
    sent: list[bytes] = []

    class Closing(FakeTransport):
        def close(self) -> None:
            sent.append(self.sent)

    client.transport = Closing()
    client.connection.connection_made(client.transport)
    client.dispatcher.outcomes = {2: CLOSE_CONNECTION}
    client.send(frame(1) + frame(2))
    assert sent == [b"<1>"]


def test_bytes_that_are_not_kafka_close_the_connection_and_name_the_peer(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.send((5000).to_bytes(4, "big"))
    assert client.transport.closing
    [line] = [r.getMessage() for r in caplog.records]
    assert "10.0.0.1:1234" in line
    assert "5000" in line
    assert "1000" in line


def test_the_end_of_a_connection_is_told_once(client: Client) -> None:
    closed: list[str] = []
    client.connection.when_closed(lambda: closed.append("a"))
    client.connection.when_closed(lambda: closed.append("b"))
    client.connection.connection_lost(None)
    assert closed == ["b"], "there is one"
    client.connection.when_closed(lambda: closed.append("late"))
    assert closed == ["b", "late"]


def test_a_lost_connection_abandons_its_parked_requests(client: Client) -> None:
    pending = Pending()
    abandoned: list[bool] = []
    pending.on_abandon = lambda: abandoned.append(True)
    client.dispatcher.outcomes = {1: pending}
    client.send(frame(1))
    client.connection.connection_lost(None)
    assert abandoned == [True]
    assert len(client.table) == 0
    pending.complete([b"late"])
    assert client.transport.sent == b""


def test_a_connection_counts_until_it_is_lost(client: Client) -> None:
    assert client.table.limits.total == 1
    client.connection.connection_lost(None)
    client.connection.connection_lost(None)
    assert client.table.limits.total == 0


def test_only_idle_connections_are_closed() -> None:
    table = ConnectionTable(KafkaConfig({"connections.max.idle.ms": "100"}))
    idle, busy, parked = Client(table), Client(table), Client(table)
    parked.dispatcher.outcomes = {1: Pending()}
    parked.send(frame(1))
    busy.now_ms = 150
    busy.send(frame(1))
    table.close_idle(200)
    closing: list[Callable[[], bool]] = [c.transport.is_closing for c in (idle, busy, parked)]
    assert [is_closing() for is_closing in closing] == [True, False, False]


def test_a_client_that_left_while_its_requests_wait_is_idle() -> None:
    table = ConnectionTable(KafkaConfig({"connections.max.idle.ms": "100"}))
    client = Client(table)
    client.transport.socket, peer = socket.socketpair()
    client.dispatcher.outcomes = {1: Pending(blocks=True)}
    client.send(frame(1) + frame(2))
    assert not client.transport.reading
    table.close_idle(500)
    assert not client.transport.closing  # it waits for its answers
    peer.close()
    table.close_idle(100)
    assert not client.transport.closing
    table.close_idle(101)
    assert client.transport.closing
    client.transport.socket.close()


def test_a_client_that_takes_nothing_is_closed_whatever_it_sends() -> None:
    """It waits for an answer too, and has a frame that waits: neither is a reason to keep it."""
    table = ConnectionTable(KafkaConfig({"connections.max.idle.ms": "100"}))
    client = Client(table)
    client.dispatcher.outcomes = {2: Pending()}
    client.send(frame(1))
    client.transport.unsent = 3
    client.connection.pause_writing()
    client.send(frame(2))
    for now_ms in range(0, 101, 25):
        client.now_ms = now_ms
        client.send(frame(3))
        table.close_idle(now_ms)
        assert not client.transport.closing
    table.close_idle(101)
    assert client.transport.aborted


def test_a_client_that_takes_a_little_is_kept_and_then_has_the_whole_limit() -> None:
    table = ConnectionTable(KafkaConfig({"connections.max.idle.ms": "100"}))
    client = Client(table)
    client.dispatcher.outcomes = {1: [b"x" * 10]}
    client.send(frame(1))
    for now_ms, unsent in ((80, 10), (160, 9), (240, 8), (320, 0), (400, 0)):
        client.transport.unsent = unsent
        table.close_idle(now_ms)
        assert not client.transport.closing, now_ms
    table.close_idle(421)
    assert client.transport.closing


def test_an_answer_after_a_long_wait_is_no_reason_to_close() -> None:
    table = ConnectionTable(KafkaConfig({"connections.max.idle.ms": "100"}))
    client = Client(table)
    pending = Pending()
    client.dispatcher.outcomes = {1: pending}
    client.send(frame(1))
    table.close_idle(900)
    client.now_ms = 990
    pending.complete([b"<1>"])
    client.transport.unsent = 3
    table.close_idle(1000)
    client.transport.unsent = 0
    table.close_idle(1010)
    assert not client.transport.closing
    table.close_idle(1111)
    assert client.transport.closing


def test_a_muted_connection_handles_nothing_and_answers_what_it_has(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = fake_timers(monkeypatch)
    parked = Pending()
    client.dispatcher.outcomes = {1: parked}
    client.send(frame(1))
    client.connection.mute(500)
    client.send(frame(2) + frame(3))
    parked.complete([b"<1>"])
    assert (client.dispatcher.seen, client.transport.sent) == ([1], b"<1>")
    assert not client.transport.reading
    assert not client.connection.is_idle
    timers.fire()
    assert client.transport.sent == b"<1><2><3>"
    assert client.transport.reading
    assert client.connection.is_idle


def test_the_longest_pause_holds(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = fake_timers(monkeypatch)
    for pause_ms in (500, 300, 800):
        client.connection.mute(pause_ms)
    assert timers.delays_s == [0.8]
    timers.fire()
    client.send(frame(1))
    assert client.transport.sent == b"<1>"


def test_a_pause_ends_with_its_connection(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = fake_timers(monkeypatch)
    client.connection.mute(500)
    client.connection.connection_lost(None)
    assert timers.delays_s == []


def test_while_requests_have_no_memory_left_none_that_needs_some_is_read() -> None:
    table = ConnectionTable(
        KafkaConfig({"queued.max.request.bytes": "1000", "socket.request.max.bytes": "1000"})
    )
    whole = (900).to_bytes(4, "big") + frame(1)[4:].ljust(900, b"\0")
    first, second, third, small = (Client(table) for _ in range(4))
    first.send(whole[:50])
    second.send(whole[:50])
    third.send(whole[:50])
    small.send(frame(7))  # whole at once: it needs none
    reading = [client.transport.reading for client in (first, second, third)]
    assert (reading, small.transport.sent) == ([True, True, False], b"<7>")
    assert not third.connection.is_idle
    first.send(whole[50:])
    assert first.transport.sent == b"<1>"
    assert third.transport.reading
    second.connection.connection_lost(None)
    third.send(whole[50:])
    assert third.transport.sent == b"<1>"
    assert table.memory is not None
    assert table.memory.available_bytes == 1000
