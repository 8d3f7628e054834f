"""Requests about delegation tokens, in order, and the answers of a broker, so that two brokers can
be compared: ids become numbers, and times are relative to the creation of the token."""

from __future__ import annotations

from typing import Any, Final

from kafkapy.client.cluster import Cluster
from kafkapy.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kafkapy.protocol.schema import Message
from tests.harness.processes.waiting import wait_until
from tests.harness.security.token_brokers import (
    by_token,
    create,
    creation,
    description,
    expiry,
    renewal,
    request_as,
)

_HOUR_MS: Final = 3_600_000
_PERIODS: Final = (-1, -2, 5 * _HOUR_MS, 2000 * _HOUR_MS, 2 * _HOUR_MS)


class TokenExchange:
    """Sends a series of token requests to one broker and records its answers; leaves no tokens."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self._numbers: dict[str, int] = {}
        self._made: list[Any] = []
        self.answers: list[tuple[Any, ...]] = []

    def run(self) -> list[tuple[Any, ...]]:
        """Send all requests. Returns the answers in order."""
        self._create()
        self._describe()
        self._change()
        self._not_allowed()
        self._end()
        return self.answers

    def _ask(self, user: str, request: Message, version: int | None = None) -> Any:
        answer = request_as(self._broker, user, request, version)
        self._note(user, request, answer)
        return answer

    def _note(self, user: str, request: Message, answer: Any) -> None:
        if hasattr(answer, "tokens"):
            rows = sorted(self._row(row) for row in answer.tokens)
            self.answers.append((user, request, answer.error_code, rows))
        elif hasattr(answer, "token_id"):
            self._numbers.setdefault(answer.token_id, len(self._numbers))
            times = (answer.expiry_timestamp_ms, answer.max_timestamp_ms)
            after = [each - answer.issue_timestamp_ms for each in times]
            sizes = len(answer.token_id), len(answer.hmac)
            row = (*_principals(answer), *after, *sizes)
            self.answers.append((user, request, answer.error_code, *row))
        else:
            self.answers.append((user, type(request), answer.error_code, self._after(answer)))

    def _after(self, answer: Any) -> int:
        """A token's expiry in half hours after the first creation: a test takes no hour."""
        if answer.error_code:
            return int(answer.expiry_timestamp_ms)
        after_ms = answer.expiry_timestamp_ms - self._made[0].issue_timestamp_ms
        return round(after_ms / (_HOUR_MS / 2))

    def _row(self, row: Any) -> tuple[Any, ...]:
        after = [each - row.issue_timestamp for each in (row.expiry_timestamp, row.max_timestamp)]
        renewers = [(r.principal_type, r.principal_name) for r in row.renewers]
        number = self._numbers[row.token_id]
        proof = bytes(row.hmac) == bytes(self._made[number].hmac)
        return number, *_principals(row), *map(_half_hours, after), renewers, proof

    def _create(self) -> None:
        """Create tokens; alice may create tokens of carol."""
        for user, how in (
            ("alice", {}),
            ("alice", {"owner": "carol"}),
            ("admin", {"owner": "dave", "max_lifetime_ms": _HOUR_MS}),
        ):
            self._made.append(self._ask(user, creation("bob", **how)))
        for version in (0, 1, 2):
            self._made.append(self._ask("bob", creation(max_lifetime_ms=0), version))
        for user, request in (
            ("alice", creation(owner="bob")),
            ("bob", creation(owner="carol")),
            ("alice", creation("bob", kind="Group")),
            ("admin", creation("bob", "", kind="")),
        ):
            self._ask(user, request)

    def _describe(self) -> None:
        """Describe tokens; dave may describe the tokens of alice, and carol the first token."""
        for user in ("admin", "alice", "bob", "carol", "dave"):
            for request in (
                description(),
                description("alice"),
                description("carol", "dave"),
                description("bob"),
                DescribeDelegationTokenRequest(owners=[]),
            ):
                self._ask(user, request)
        for version in (0, 1, 2):
            self._ask("admin", description(), version)

    def _change(self) -> None:
        for token in self._made[:3]:
            for user in ("admin", "alice", "bob", "carol", "dave"):
                self._ask(user, renewal(token.hmac, 3 * _HOUR_MS))
                self._ask(user, expiry(token.hmac, 2 * _HOUR_MS))
        for hmac in (b"", b"unknown", bytes(64)):
            self._ask("admin", renewal(hmac))
            self._ask("admin", expiry(hmac))
        for period_ms in _PERIODS:
            self._ask("alice", renewal(self._made[0].hmac, period_ms))
            if period_ms >= 0:
                self._ask("alice", expiry(self._made[0].hmac, period_ms))
        for version in (0, 1, 2):
            self._ask("alice", renewal(self._made[0].hmac, 4 * _HOUR_MS), version)
            self._ask("alice", expiry(self._made[0].hmac, 3 * _HOUR_MS), version)

    def _not_allowed(self) -> None:
        requests = (creation(), description(), renewal(b"h"), expiry(b"h"))
        with (
            Cluster(self._broker.bootstrap_servers) as plaintext,
            by_token(self._broker, self._made[0]) as with_token,
        ):
            for name, cluster in (("nobody", plaintext), ("token", with_token)):
                for request in requests:
                    self._note(name, request, cluster.request(request))

    def _end(self) -> None:
        """Use expired tokens, and end all tokens."""
        self._wait_for_removal()
        expired_token = create(self._broker, "alice", max_lifetime_ms=1)
        self._made.append(expired_token)
        for request in (renewal(expired_token.hmac), expiry(expired_token.hmac, 5)):
            self._ask("alice", request)
        owners = ("alice", "alice", "carol", "dave", "bob", "bob", "bob")
        for user, token in zip(owners, [expired_token, *self._made[:-1]], strict=True):
            self._ask(user, expiry(token.hmac, -5))
            self._ask(user, expiry(token.hmac))
        self._ask("admin", description())

    def _wait_for_removal(self) -> None:
        """Wait until the controller removes expired tokens: it will not do so again for a while."""
        expired_token = create(self._broker, "alice", max_lifetime_ms=1)

        def is_removed() -> bool:
            rows = request_as(self._broker, "alice", description("alice")).tokens
            return all(row.token_id != expired_token.token_id for row in rows)

        wait_until(is_removed, "a token that is over is removed")


def _principals(row: Any) -> tuple[str, ...]:
    return (
        row.principal_type,
        row.principal_name,
        row.token_requester_principal_type,
        row.token_requester_principal_name,
    )


def _half_hours(after_ms: int) -> int:
    return round(after_ms / (_HOUR_MS / 2))
