"""A cached decision about one connection's client, valid until its basis changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Versioned(Protocol):
    """The basis of decisions: ACLs or quotas. Every change sets a new `version`."""

    version: int


class AuthenticatedConnection(Protocol):
    """A connection. Its principal may change when the client authenticates again."""

    principal: str


class CachedDecision:
    """The result of `decide(principal)`, which is called again only after a change of `basis` or
    the principal.

    A fast path checks it with each request of a connection, so it costs two comparisons.
    """

    __slots__ = ("_basis", "_connection", "_decide", "_holds", "_principal", "_version")

    def __init__(
        self, basis: Versioned, connection: AuthenticatedConnection, decide: Callable[[str], bool]
    ) -> None:
        self._basis = basis
        self._connection = connection
        self._decide = decide
        self._holds = False
        self._version = -1
        self._principal = ""

    def holds(self) -> bool:
        """The decision for the present version and principal."""
        basis, principal = self._basis, self._connection.principal
        if self._version != basis.version or self._principal != principal:
            self._holds = self._decide(principal)
            self._version, self._principal = basis.version, principal
        return self._holds
