"""Share sessions: the partitions that a member of a share group fetches from this broker (KIP-932).

A session is opened by epoch 0, continued by the next epoch, and closed by -1, or when its
connection ends. Kafka: `ShareSessionCache`, `SharePartitionManager.newContext`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1
PARTITIONS_MAX: Final = 1_000_000
"""The limit for all sessions together: 210 MB. Kafka limits their number only."""
SMALL_SESSION_MAX: Final = 256
"""The number of partitions that any session may have, regardless of `PARTITIONS_MAX`."""


class SessionKey(NamedTuple):
    """A member of a share group."""

    group_id: str
    member_id: str


class TopicIdIndex(NamedTuple):
    """One partition of a topic, by id."""

    topic_id: Uuid
    partition: int


class ShareSession:
    """The partitions of a session, in the order of the next read, and the connection that opened
    the session."""

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, connection: object) -> None:
        self.key = key
        self.connection = connection
        self.epoch = 1
        self.partitions: dict[TopicIdIndex, None] = {}

    def plan(self) -> list[TopicIdIndex]:
        """The partitions to read. The first one is the last of the next plan, so that each
        partition comes first in turn."""
        plan = list(self.partitions)
        if plan:
            del self.partitions[plan[0]]
            self.partitions[plan[0]] = None
        return plan


class ShareSessions:
    """The sessions of one broker; `slots` is their limit."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[SessionKey, ShareSession] = {}

    def has_group(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return any(key.group_id == group_id for key in self._sessions)

    def is_open(self, session: ShareSession) -> bool:
        """Whether the session has not ended, and no other one has replaced it."""
        return self._sessions.get(session.key) is session

    def open(
        self,
        key: SessionKey,
        epoch: int,
        wanted: Iterable[TopicIdIndex],
        forgotten: Iterable[TopicIdIndex],
        connection: object = None,
    ) -> ShareSession:
        """The session of a fetch, with the partitions that the fetch adds, and without those that
        it forgets.

        Raises:
            ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, or
                SHARE_SESSION_LIMIT_REACHED.
        """
        if epoch == INITIAL_EPOCH:
            if key not in self._sessions and len(self._sessions) >= self._slots:
                raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
            session = ShareSession(key, connection)
        else:
            session = self.use(key, epoch)
        added = dict.fromkeys(each for each in wanted if each not in session.partitions)
        size = len(session.partitions) + len(added)
        if added and size > SMALL_SESSION_MAX:
            self._check_limit(key, size)
        self._sessions[key] = session
        session.partitions.update(added)
        for partition in forgotten:
            session.partitions.pop(partition, None)
        return session

    def _check_limit(self, key: SessionKey, size: int) -> None:
        others = (len(each.partitions) for each in self._sessions.values() if each.key != key)
        if sum(others) + size > PARTITIONS_MAX:
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)

    def use(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session of a request. Checks and advances the session's epoch.

        Raises:
            ApiError: SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get(key)
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        return session

    def sessions_of(self, connection: object) -> list[ShareSession]:
        """The sessions that a connection has opened."""
        return [each for each in self._sessions.values() if each.connection is connection]

    def close(self, key: SessionKey) -> None:
        """Remove a session."""
        self._sessions.pop(key, None)
