"""Delegation tokens (KIP-48, KIP-373): their data, and the rules for principals that use them
(`TokenInformation`, `DelegationTokenManager`). Principals are `User:alice`.
"""

from __future__ import annotations

import hmac
from typing import Final, NamedTuple

USER_TYPE: Final = "User"


class TokenInformation(NamedTuple):
    """A token without its secret. `requester` created it; times are wall-clock."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_ms: int
    max_ms: int
    expiry_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Whether the token cannot be renewed any more, and must be removed."""
        return self.max_ms < now_ms or self.expiry_ms < now_ms

    def may_be_renewed_by(self, principal: str) -> bool:
        """Whether this principal may renew or expire the token. Its requester may not."""
        return principal == self.owner or principal in self.renewers

    def is_owner_or_renewer(self, principal: str) -> bool:
        """Whether the token may be described to this principal without an ACL
        (`TokenInformation.ownerOrRenewer`).
        """
        return principal == self.requester or self.may_be_renewed_by(principal)


def token_hmac(token_id: str, secret: bytes) -> bytes:
    """The HMAC of a token; its base64 is the password. `secret` is known to brokers only."""
    return hmac.digest(secret, token_id.encode(), "sha512")


def principal_of(kind: str, name: str) -> str:
    """The text of a principal, which messages have as two fields."""
    return f"{kind}:{name}"
