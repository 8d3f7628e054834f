"""Data queued for a client."""

from __future__ import annotations

from kafkapy.zk.service.connection import Connection


def test_what_is_queued_is_taken_once() -> None:
    connection = Connection("1.2.3.4", 5, 100, 0)
    connection.send(b"ab")
    connection.send_text("imok")
    connection.unsent_bytes = lambda: 7
    assert connection.waiting_bytes() == 17
    assert connection.take() == b"\0\0\0\2abimok"
    assert connection.take() == b""
    assert (connection.sent, connection.waiting_bytes()) == (1, 7)
    assert str(connection) == "/1.2.3.4:5"
    assert list(connection.identities) == [("ip", "1.2.3.4")]
