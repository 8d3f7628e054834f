"""Delegation tokens (KIP-48, KIP-373): what is known of one, and who may do what with it
(`TokenInformation`, `DelegationTokenManager`). Principals are `User:alice`."""

from __future__ import annotations

import hmac
from typing import Final, NamedTuple

USER_TYPE: Final = "User"


class TokenInformation(NamedTuple):
    """A token without its secret; `requester` asked for it, times are of the wall clock."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_ms: int
    max_ms: int
    expiry_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Whether it may not be renewed any more, and is to be removed."""
        return self.max_ms < now_ms or self.expiry_ms < now_ms

    def may_be_renewed_by(self, principal: str) -> bool:
        """Whether this principal may renew or expire it. Who asked for it may not."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: str) -> bool:
        """Whether it may be described to this principal without any right
        (`TokenInformation.ownerOrRenewer`)."""
        return principal == self.requester or self.may_be_renewed_by(principal)


def token_hmac(token_id: str, secret: bytes) -> bytes:
    """The HMAC of a token; its base64 is the password. `secret` is the brokers' own."""
    return hmac.digest(secret, token_id.encode(), "sha512")


def principal_of(kind: str, name: str) -> str:
    """A principal of two fields of a message."""
    return f"{kind}:{name}"
