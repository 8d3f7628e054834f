"""Four-letter words: what monitoring reads."""

from __future__ import annotations

import pytest

from kafkapy.zk.service.four_letter_words import Traffic
from kafkapy.zk.service.settings import WORDS, ServiceSettings
from kafkapy.zk.wire.codes import OpCode
from kafkapy.zk.wire.frames import encode_frame
from kafkapy.zk.wire.requests import EmptyRequest, WatchedRequest, encode_request
from tests.harness.cores.ports import ManualClock
from tests.harness.cores.socketless_zookeeper import Client, SocketlessServer


def every_word() -> SocketlessServer:
    return SocketlessServer(ServiceSettings(words=frozenset(WORDS)))


def asked(desk: SocketlessServer, word: str) -> str:
    client = Client(desk)
    client.send_bytes(word.encode())
    assert client.connection.is_closing
    desk.service.remove_connection(client.connection)
    return client.raw.decode()


def rows(text: str, separator: str) -> dict[str, str]:
    return dict(line.split(separator, 1) for line in text.splitlines() if separator in line)


def test_short_answers() -> None:
    desk = every_word()
    assert [asked(desk, word) for word in ("ruok", "isro")] == ["imok", "rw"]
    assert asked(desk, "dump") == "dump is not executed because it is not in the whitelist.\n"
    assert "zookeeper.version=3.9" in asked(desk, "envi")


def test_server_and_clients() -> None:
    desk = every_word()
    client = desk.client()
    client.create("/a", b"12345", 1)
    client.exists("/b", watch=True)
    server = rows(asked(desk, "srvr"), ": ")
    assert server["Mode"] == "standalone"
    assert (server["Zxid"], server["Node count"], server["Received"]) == ("0x2", "5", "3")
    told = asked(desk, "stat")
    assert told.startswith("Zookeeper version: 3.9")
    assert " /127.0.0.1:4711[1](queued=0,recved=3,sent=3)\n" in told
    details = asked(desk, "cons")
    assert f",sid={client.session.session_id:#x},lop=EXISTS," in details
    metrics = rows(asked(desk, "mntr"), "\t")
    assert metrics["zk_server_state"] == "standalone"
    assert [metrics[f"zk_{name}"] for name in ("znode_count", "watch_count")] == ["5", "1"]
    assert (metrics["zk_ephemerals_count"], metrics["zk_global_sessions"]) == ("1", "1")
    assert asked(desk, "wchs") == "1 connections watching 1 paths\nTotal watches:1\n"
    conf = rows(asked(desk, "conf"), "=")
    assert (conf["clientPort"], conf["tickTime"], conf["maxClientCnxns"]) == ("2181", "3000", "60")


def test_when_a_connection_began_is_told_by_the_calendar() -> None:
    desk = every_word()
    desk.clock = ManualClock(wall_ahead_ms=5_000_000)
    desk.restart()
    client = desk.client()
    began_ms = desk.clock.time_ms()
    desk.tick(6000)
    client.send_bytes(encode_frame(encode_request(7, OpCode.EXISTS, WatchedRequest("/", False))))
    assert f",est={began_ms},to=30000,lcxid=0x7" in asked(desk, "cons")
    client.send_bytes(encode_frame(encode_request(-2, OpCode.PING, EmptyRequest())))
    assert f",lop=PING,est={began_ms},to=30000)\n" in asked(desk, "cons"), "as Apache's"


def test_a_word_is_one_only_before_a_session() -> None:
    desk = every_word()
    client = desk.client()
    client.send_bytes(b"ruok")
    assert client.connection.is_closing
    assert client.raw[-4:] != b"imok"


def test_a_server_tells_strangers_no_more_than_apaches_unless_the_file_allows_it() -> None:
    desk = SocketlessServer()
    assert asked(desk, "srvr").startswith("Zookeeper version: 3.9")
    for word in set(WORDS) - {"srvr"}:
        refused = f"{word} is not executed because it is not in the whitelist.\n"
        assert asked(desk, word) == refused


def test_a_word_that_the_file_keeps_back() -> None:
    desk = SocketlessServer(ServiceSettings(words=frozenset({"ruok"})))
    assert asked(desk, "ruok") == "imok"
    assert asked(desk, "cons") == "cons is not executed because it is not in the whitelist.\n"


def test_latencies() -> None:
    traffic = Traffic()
    assert traffic.average_ms == 0
    traffic.count_replies(3, 4)
    traffic.count_replies(1, 8)
    assert (traffic.min_ms, traffic.max_ms, traffic.average_ms) == (4, 8, 5.0)


@pytest.mark.parametrize("pieces", [(b"ru", b"ok"), (b"r", b"u", b"o", b"k")])
def test_a_word_in_pieces(pieces: tuple[bytes, ...]) -> None:
    client = Client(every_word())
    for piece in pieces:
        client.send_bytes(piece)
    assert client.raw == b"imok"
