"""Timeouts, deadlines, and what happens while nobody looks at them."""

from __future__ import annotations

from kafkapy.zk.embedded.znode_tree import OpenSession
from kafkapy.zk.service.sessions import SessionTable, next_session_id


def table(now_ms: int = 0) -> SessionTable[str]:
    return SessionTable(1000, 2000, 20_000, now_ms)


def test_a_timeout_is_negotiated() -> None:
    assert [table().negotiated_timeout_ms(ms) for ms in (-1, 0, 5000, 10**9)] == [
        2000,
        2000,
        5000,
        20_000,
    ]


def test_a_session_expires_in_the_tick_after_its_timeout() -> None:
    sessions = table()
    session = sessions.add(OpenSession(1, b"p", 3000), 500)
    assert session.deadline_ms == 4000
    for now_ms in (1000, 2000, 3000):
        assert sessions.expired_sessions(now_ms) == []
    sessions.touch(session, 3100)
    for now_ms in (4000, 5000, 6000):
        assert sessions.expired_sessions(now_ms) == []
    assert sessions.expired_sessions(7000) == [session]
    sessions.remove(session)
    assert len(sessions) == 0


def test_a_server_that_stood_still_does_not_punish_its_clients() -> None:
    sessions = table()
    session = sessions.add(OpenSession(1, b"p", 3000), 0)
    assert sessions.expired_sessions(60_000) == []
    for now_ms in (61_000, 62_000):
        assert sessions.expired_sessions(now_ms) == []
    assert sessions.expired_sessions(63_000) == [session]


def test_a_pause_of_less_than_two_ticks_punishes_nobody_either() -> None:
    sessions = table()
    session = sessions.add(OpenSession(1, b"p", 2000), 0)
    assert sessions.expired_sessions(1000) == []
    sessions.touch(session, 1999)
    assert sessions.expired_sessions(2000) == []
    assert sessions.expired_sessions(4000) == [], (
        "the client's ping lies unread since an fsync began"
    )
    assert sessions.expired_sessions(5000) == [session]


def test_a_restored_session_has_its_whole_timeout_to_come() -> None:
    sessions = table(70_000)
    sessions.restore([OpenSession(5, b"p", 3000)], 70_000)
    session = sessions.get(5)
    assert session is not None
    assert session.deadline_ms == 74_000
    assert session.has_password(b"p")
    assert not session.has_password(b"q")
    assert not session.has_password(None)
    assert sessions.get(6) is None


def test_no_id_is_given_twice() -> None:
    first = next_session_id(0, 1_700_000_000_000)
    assert 0 < first < 1 << 63
    assert next_session_id(first, 1_700_000_000_000) == first + 1
    assert next_session_id(first, 1_000) == first + 1, "the clock was set back"
    assert next_session_id(first, 1_700_000_000_001) > first + 1
