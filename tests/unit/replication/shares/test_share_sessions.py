"""Share sessions: epochs, partitions and their limit."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.replication.shares import share_sessions
from kafkapy.replication.shares.share_sessions import SessionKey, ShareSessions, TopicIdIndex
from tests.harness.cores.consumer_shell import topic_id

KEY = SessionKey("g", "m")
P0, P1 = (TopicIdIndex(topic_id(1), index) for index in range(2))


def refused(sessions: ShareSessions, key: SessionKey, epoch: int) -> ErrorCode:
    with pytest.raises(ApiError) as refusal:
        sessions.open(key, epoch, [], [])
    return refusal.value.code


def test_a_session_goes_on_with_the_next_epoch() -> None:
    sessions = ShareSessions(2)
    assert refused(sessions, KEY, 1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    session = sessions.open(KEY, 0, [P0, P1], [])
    assert sessions.open(KEY, 1, [], []) is session
    assert refused(sessions, KEY, 1) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.use(KEY, 2) is session
    assert sessions.use(KEY, -1) is session
    session.epoch = 2**31 - 1
    sessions.use(KEY, 2**31 - 1)
    assert session.epoch == 1
    assert sessions.is_open(session)
    replacement = sessions.open(KEY, 0, [P0], [])
    assert replacement is not session
    assert (sessions.is_open(session), sessions.is_open(replacement)) == (False, True)
    assert sessions.has_group("g")
    sessions.close(KEY)
    assert not sessions.has_group("g")
    assert not sessions.is_open(replacement)


def test_all_partitions_have_their_turn() -> None:
    session = ShareSessions(1).open(KEY, 0, [P0, P1], [])
    assert session.plan() == [P0, P1]
    assert session.plan() == [P1, P0]
    session.partitions.pop(P0)
    assert session.plan() == [P1]


def test_forgotten_partitions_are_not_read() -> None:
    sessions = ShareSessions(1)
    sessions.open(KEY, 0, [P0, P1], [])
    assert sessions.open(KEY, 1, [], [P0]).plan() == [P1]


def test_a_session_is_of_the_connection_that_has_opened_it() -> None:
    sessions, first, second = ShareSessions(2), object(), object()
    session = sessions.open(KEY, 0, [P0], [], first)
    sessions.open(KEY, 1, [], [], second)
    assert (sessions.sessions_of(first), sessions.sessions_of(second)) == ([session], [])


def test_a_broker_has_a_limit_of_sessions() -> None:
    sessions = ShareSessions(1)
    sessions.open(KEY, 0, [P0], [])
    other = KEY._replace(member_id="n")
    assert refused(sessions, other, 0) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert sessions.is_open(sessions.open(KEY, 0, [P0], []))


def test_large_sessions_have_a_limit_of_partitions_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(share_sessions, "SMALL_SESSION_MAX", 3)
    monkeypatch.setattr(share_sessions, "PARTITIONS_MAX", 10)
    sessions, other = ShareSessions(9), KEY._replace(member_id="n")
    rows = [TopicIdIndex(topic_id(1), index) for index in range(20)]

    def open_refused(key: SessionKey, epoch: int, wanted: list[TopicIdIndex]) -> ErrorCode:
        with pytest.raises(ApiError) as refusal:
            sessions.open(key, epoch, wanted, [])
        return refusal.value.code

    sessions.open(KEY, 0, rows[:6], [])
    assert open_refused(KEY, 1, rows[6:11]) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert len(sessions.use(KEY, -1).partitions) == 6
    sessions.open(KEY, 2, rows[:10], [])
    assert open_refused(other, 0, rows[:4]) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert [session.key for session in sessions.sessions_of(None)] == [KEY]
    sessions.open(other, 0, rows[:3], [])  # as many as any session may have
    sessions.open(KEY, 0, rows[:7], [])  # in place of the one before
    assert open_refused(KEY, 1, rows[:8]) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
