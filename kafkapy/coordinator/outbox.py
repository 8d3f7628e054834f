"""Collects a coordinator's replies, immediate or later, and its appends with their
continuations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NewType, TypeAlias, TypeVar

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Append, Effects, Producer, Token
from kafkapy.record.builder import RecordData

Ticket = NewType("Ticket", int)
"""A reference to a waiting token. With it, groups need no reference to a connection."""

AppendCallback: TypeAlias = Callable[[int, ErrorCode, int], None]
"""Called with (now_ms, error, base offset of the batch or -1)."""


R = TypeVar("R")


class Outbox(Generic[R]):
    """Collects the effects of one call, and keeps the tokens of waiting requests.

    Each token is answered exactly once: immediately by `reply`, or by the first `answer` to its
    ticket.
    """

    __slots__ = (
        "_append_callbacks",
        "_effects",
        "_last_id",
        "_ticket_by_token",
        "_token_by_ticket",
    )

    def __init__(self) -> None:
        self._effects: Effects[R] = Effects()
        self._last_id = 0
        self._token_by_ticket: dict[Ticket, Token] = {}
        self._ticket_by_token: dict[Token, Ticket] = {}
        self._append_callbacks: dict[int, AppendCallback] = {}

    def reply(self, token: Token, result: R) -> None:
        """Answer a request that does not wait."""
        self._effects.replies.append((token, result))

    def hold(self, token: Token) -> Ticket:
        """Keep a request until its ticket is answered."""
        assert token not in self._ticket_by_token, f"token {token!r} waits already"
        ticket = Ticket(self._next_id())
        self._token_by_ticket[ticket] = token
        self._ticket_by_token[token] = ticket
        return ticket

    def answer(self, ticket: Ticket, result: R) -> None:
        """Answer a waiting request. If its token was dropped, so is the answer."""
        if ticket in self._token_by_ticket:
            token = self._token_by_ticket.pop(ticket)
            del self._ticket_by_token[token]
            self.reply(token, result)

    def drop_token(self, token: Token) -> None:
        """Drop a token whose client has disconnected."""
        ticket = self._ticket_by_token.pop(token, None)
        if ticket is not None:
            del self._token_by_ticket[ticket]

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: list[RecordData],
        on_append: AppendCallback,
        producer: Producer | None = None,
    ) -> None:
        """Request an append with acks=all, in a `producer`'s transaction if given. `on_append` is
        called with the outcome.
        """
        append_id = self._next_id()
        self._append_callbacks[append_id] = on_append
        append = Append(append_id, partition, leader_epoch, records, producer=producer)
        self._effects.appends.append(append)

    def append_without_acks(
        self, partition: int, leader_epoch: int, records: list[RecordData]
    ) -> None:
        """Request an append whose outcome does not matter (tombstones)."""
        append = Append(self._next_id(), partition, leader_epoch, records, required_acks=0)
        self._effects.appends.append(append)

    def append_completed(
        self, now_ms: int, append_id: int, error: ErrorCode, base_offset: int
    ) -> None:
        """Call the continuation of an append, if it has one."""
        on_append = self._append_callbacks.pop(append_id, None)
        if on_append is not None:
            on_append(now_ms, error, base_offset)

    def take(self) -> Effects[R]:
        """The effects since the last call."""
        effects, self._effects = self._effects, Effects()
        return effects

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id
