"""The broker's half of SASL/GSSAPI (RFC 4752, `GssKrb5Server` of Java), without a connection.

`TRANSITIONS` is the order of messages. `gss_context` handles Kerberos' own tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from kafkapy.security.kerberos.gss_context import OFFER, GssContext, GssFailed, check_choice
from kafkapy.security.kerberos.names import NoLocalName
from kafkapy.security.sasl.server import RefusedSilently


class GssState(Enum):
    """States: the token that is expected next."""

    CONTEXT = auto()
    """A Kerberos token."""
    READY = auto()
    """An empty token: the client has the broker's token, and waits for the security layers."""
    CHOICE = auto()
    """The client's security layer."""
    COMPLETE = auto()


class GssEvent(Enum):
    """Events: the result of a token."""

    CONTINUE_NEEDED = auto()
    ESTABLISHED_WITH_TOKEN = auto()
    ESTABLISHED = auto()
    OFFERED = auto()
    CHOSEN = auto()


TRANSITIONS: Final[dict[tuple[GssState, GssEvent], GssState]] = {
    (GssState.CONTEXT, GssEvent.CONTINUE_NEEDED): GssState.CONTEXT,
    (GssState.CONTEXT, GssEvent.ESTABLISHED_WITH_TOKEN): GssState.READY,
    (GssState.CONTEXT, GssEvent.ESTABLISHED): GssState.CHOICE,
    (GssState.READY, GssEvent.OFFERED): GssState.CHOICE,
    (GssState.CHOICE, GssEvent.CHOSEN): GssState.COMPLETE,
}


class GssapiServer:
    """GSSAPI: two Kerberos tokens, the broker's offer, and the client's choice. As in Kafka, a
    session may outlast its ticket.
    """

    lifetime_ms: int | None = None

    def __init__(self, context: GssContext, name_of: Callable[[str], str]) -> None:
        """`name_of` maps a principal to its user, or raises NoLocalName."""
        self.username: str | None = None
        self.state = GssState.CONTEXT
        self._context = context
        self._name_of = name_of

    def evaluate(self, token: bytes) -> bytes | None:
        """The answer; None if the exchange is complete. Raises RefusedSilently."""
        try:
            event, answer = _STEPS[self.state](self, token)
        except (GssFailed, NoLocalName) as failed:
            raise RefusedSilently(str(failed)) from None
        self.state = TRANSITIONS[self.state, event]
        return answer

    def _establish(self, token: bytes) -> tuple[GssEvent, bytes | None]:
        answer = self._context.step(token)
        if not self._context.is_established:
            return GssEvent.CONTINUE_NEEDED, answer
        if answer:
            return GssEvent.ESTABLISHED_WITH_TOKEN, answer
        return GssEvent.ESTABLISHED, self._context.wrap(OFFER)

    def _offer(self, token: bytes) -> tuple[GssEvent, bytes | None]:
        if token:
            raise GssFailed(f"{len(token)} bytes came where nothing was to be said")
        return GssEvent.OFFERED, self._context.wrap(OFFER)

    def _choose(self, token: bytes) -> tuple[GssEvent, bytes | None]:
        check_choice(self._context.unwrap(token))
        self.username = self._name_of(self._context.initiator)
        return GssEvent.CHOSEN, None

    def _refuse(self, token: bytes) -> tuple[GssEvent, bytes | None]:
        raise GssFailed("The login is over already")


_Step = Callable[[GssapiServer, bytes], tuple[GssEvent, bytes | None]]
_STEPS: Final[dict[GssState, _Step]] = {
    GssState.CONTEXT: GssapiServer._establish,
    GssState.READY: GssapiServer._offer,
    GssState.CHOICE: GssapiServer._choose,
    GssState.COMPLETE: GssapiServer._refuse,
}
