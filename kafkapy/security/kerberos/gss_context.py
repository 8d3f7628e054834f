"""A GSS-API security context for SASL, and the messages of RFC 4752 that negotiate a security
layer. As in Kafka, no layer is used: TLS protects the connection.
"""

from __future__ import annotations

from typing import Final, Protocol

from kafkapy.common.errors import KafkapyError

MECHANISM: Final = "GSSAPI"
_NO_LAYER: Final = 1  # the bits: 1 none, 2 integrity, 4 privacy
_BUFFER_SIZE: Final = bytes(3)  # 0: without a layer, no buffer is needed
_FIXED_BYTES: Final = 4

OFFER: Final = bytes([_NO_LAYER]) + _BUFFER_SIZE
"""The security layers that a broker offers."""

CHOICE: Final = OFFER
"""The security layer that a client chooses. An authorization id may follow."""


class GssFailed(KafkapyError):
    """A step of Kerberos has failed. The text is the reason, in one line."""


class GssContext(Protocol):
    """One side of a login. All methods may raise GssFailed."""

    @property
    def is_established(self) -> bool:
        """Whether both sides are authenticated."""

    @property
    def initiator(self) -> str:
        """The client's principal, once established."""

    def step(self, token: bytes) -> bytes:
        """The answer to the peer's token; empty if there is none. The first step has no token."""

    def wrap(self, message: bytes) -> bytes:
        """Wrap a message with integrity protection, without encryption."""

    def unwrap(self, token: bytes) -> bytes:
        """Unwrap the peer's message."""


def check_offer(offer: bytes) -> None:
    """Check the broker's offer. Raises GssFailed: it requires a security layer, or is malformed."""
    if len(offer) != _FIXED_BYTES:
        raise GssFailed(f"The broker's security layers are {len(offer)} bytes, not {_FIXED_BYTES}")
    if not offer[0] & _NO_LAYER:
        raise GssFailed(f"The broker asks for a security layer ({offer[0]}): use TLS instead")


def check_choice(choice: bytes) -> None:
    """Check the client's choice of a security layer. The authorization id after it is ignored, as
    in Kafka.

    Raises:
        GssFailed: the client chose a layer that was not offered.
    """
    if len(choice) < _FIXED_BYTES or choice[0] != _NO_LAYER:
        raise GssFailed(f"Client selected unsupported protection: {choice[:1].hex() or 'none'}")
