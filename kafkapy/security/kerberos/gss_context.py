"""A security context of GSS-API as SASL needs it, and the messages of RFC 4752 about what protects
the connection afterwards: nothing, here as in Kafka, whose SASL has TLS for that."""

from __future__ import annotations

from typing import Final, Protocol

from kafkapy.common.errors import KafkapyError

MECHANISM: Final = "GSSAPI"
_NO_LAYER: Final = 1  # the bits: 1 none, 2 integrity, 4 privacy
_BUFFER_SIZE: Final = bytes(3)  # there is nothing to be buffered
_FIXED_BYTES: Final = 4

OFFER: Final = bytes([_NO_LAYER]) + _BUFFER_SIZE
"""What a broker offers."""

CHOICE: Final = OFFER
"""What a client chooses; its authorization ID would follow."""


class GssFailed(KafkapyError):
    """A step of Kerberos has failed; the text says why, in one line."""


class GssContext(Protocol):
    """One side of a login. All may raise GssFailed."""

    @property
    def is_established(self) -> bool:
        """Whether both know each other."""

    @property
    def initiator(self) -> str:
        """The client's principal, once established."""

    def step(self, token: bytes) -> bytes:
        """The answer to the peer's token; empty where there is none, and to begin with."""

    def wrap(self, message: bytes) -> bytes:
        """A message that cannot be changed on its way; it is not encrypted."""

    def unwrap(self, token: bytes) -> bytes:
        """The message of the peer."""


def check_offer(offer: bytes) -> None:
    """Raises GssFailed: the broker wants each byte protected, or talks otherwise."""
    if len(offer) != _FIXED_BYTES:
        raise GssFailed(f"The broker's security layers are {len(offer)} bytes, not {_FIXED_BYTES}")
    if not offer[0] & _NO_LAYER:
        raise GssFailed(f"The broker asks for a security layer ({offer[0]}): use TLS instead")


def check_choice(choice: bytes) -> None:
    """As whom the client wants to act stands behind, and is passed over, as in Kafka: it acts as
    who it is.

    Raises:
        GssFailed: the client chose what was not offered.
    """
    if len(choice) < _FIXED_BYTES or choice[0] != _NO_LAYER:
        raise GssFailed(f"Client selected unsupported protection: {choice[:1].hex() or 'none'}")
