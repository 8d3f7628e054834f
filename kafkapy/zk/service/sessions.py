"""Sessions: negotiated timeouts, deadlines, expiry."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from kafkapy.zk.embedded.znode_tree import OpenSession

C = TypeVar("C")

PASSWORD_BYTES: Final = 16
# As in ZooKeeper: the top byte is the server's id, then 40 bits of milliseconds, and a 16-bit
# counter.
_SERVER_ID: Final = 1 << 56
_MILLISECONDS_MASK: Final = 0xFF_FFFF_FFFF


@dataclass(slots=True, eq=False)
class Session(Generic[C]):
    """A session and its current connection."""

    session_id: int
    password: bytes
    timeout_ms: int
    deadline_ms: int
    connection: C | None = None

    def has_password(self, password: bytes | None) -> bool:
        """Whether this is the session's password."""
        return hmac.compare_digest(self.password, password or b"")


class SessionTable(Generic[C]):
    """Sessions by id, with the deadlines at which idle ones expire.

    Deadlines are rounded up to ticks, as in ZooKeeper. If `expired_sessions` is called late,
    because the machine, the disk or the process stalled, all deadlines are extended by the delay:
    sessions of clients that sent pings in time do not expire.
    """

    def __init__(self, tick_ms: int, min_timeout_ms: int, max_timeout_ms: int, now_ms: int) -> None:
        self._tick_ms = tick_ms
        self._min_ms = min_timeout_ms
        self._max_ms = max_timeout_ms
        self._last_check_ms = now_ms
        self._sessions: dict[int, Session[C]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def restore(self, saved_sessions: Iterable[OpenSession], now_ms: int) -> None:
        """Restore the sessions of an earlier process. The timeout of each begins at `now_ms`."""
        for session_id, password, timeout_ms in saved_sessions:
            session = Session[C](session_id, password, timeout_ms, 0)
            self._sessions[session_id] = session
            self.touch(session, now_ms)

    def negotiated_timeout_ms(self, timeout_ms: int) -> int:
        """The session timeout granted for a requested one."""
        return min(max(timeout_ms, self._min_ms), self._max_ms)

    def add(self, opened: OpenSession, now_ms: int) -> Session[C]:
        """Add a new session."""
        session = Session[C](opened.session_id, opened.password, opened.timeout_ms, 0)
        self._sessions[opened.session_id] = session
        self.touch(session, now_ms)
        return session

    def get(self, session_id: int) -> Session[C] | None:
        """The session with this id, if it has not ended."""
        return self._sessions.get(session_id)

    def remove(self, session: Session[C]) -> None:
        """Remove a session that has ended."""
        self._sessions.pop(session.session_id, None)

    def touch(self, session: Session[C], now_ms: int) -> None:
        """Extend a session's deadline, because its client has sent a request."""
        end = now_ms + session.timeout_ms
        session.deadline_ms = (end // self._tick_ms + 1) * self._tick_ms

    def expired_sessions(self, now_ms: int) -> list[Session[C]]:
        """The sessions whose deadline has passed. Called once a tick."""
        late_ms = now_ms - self._last_check_ms - self._tick_ms
        self._last_check_ms = now_ms
        if late_ms > 0:
            for session in self._sessions.values():
                session.deadline_ms += late_ms
        return [each for each in self._sessions.values() if each.deadline_ms <= now_ms]


def next_session_id(last: int, wall_ms: int) -> int:
    """An id that no session has ever had, even if the clock was set back."""
    begin = _SERVER_ID | (wall_ms & _MILLISECONDS_MASK) << 16
    return max(begin, last + 1)
