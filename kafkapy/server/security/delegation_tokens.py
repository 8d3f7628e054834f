"""This broker's cache of delegation tokens, kept current by change notifications. SCRAM logins and
DescribeDelegationToken use it (`DelegationTokenCache`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import partial

from kafkapy.common.ports import Clock
from kafkapy.security.acls import parse_principal
from kafkapy.security.delegation_tokens import TokenInformation, token_hmac
from kafkapy.security.sasl.scram import ITERATIONS_MIN, MECHANISMS, ScramCredential, to_base64
from kafkapy.security.sasl.server import TokenCredential, TokenOf


class DelegationTokens:
    """Tokens by id and by HMAC. Fixed: the brokers' secret, empty if tokens are disabled."""

    def __init__(self, secret: bytes, clock: Clock) -> None:
        self._secret = secret
        self._clock = clock
        self._tokens: dict[str, TokenInformation] = {}
        self._ids: dict[bytes, str] = {}
        self._credentials: dict[tuple[str, str], ScramCredential] = {}  # (mechanism, id)

    @property
    def are_enabled(self) -> bool:
        """Whether delegation tokens are enabled (`tokenAuthEnabled`)."""
        return bool(self._secret)

    def put(self, token: TokenInformation) -> None:
        """Add or replace a token."""
        self._tokens[token.token_id] = token
        self._ids[self.hmac(token.token_id)] = token.token_id

    def remove(self, token_id: str) -> None:
        """Remove a token, if it exists."""
        if self._tokens.pop(token_id, None) is not None:
            del self._ids[self.hmac(token_id)]
            for mechanism in MECHANISMS:
                self._credentials.pop((mechanism, token_id), None)

    def all(self) -> Iterable[TokenInformation]:
        """Every token."""
        return self._tokens.values()

    def get(self, token_id: str) -> TokenInformation | None:
        """A token by its id."""
        return self._tokens.get(token_id)

    def id_of(self, hmac: bytes) -> str | None:
        """The id of the token with an HMAC."""
        return self._ids.get(hmac)

    def hmac(self, token_id: str) -> bytes:
        """The HMAC of a token."""
        return token_hmac(token_id, self._secret)

    def lookup_for(self, mechanism: str) -> TokenOf:
        """The look-up of tokens for logins with a mechanism."""
        return partial(self._find, mechanism)

    def _find(self, mechanism: str, token_id: str) -> TokenCredential | None:
        token = self._tokens.get(token_id)
        if token is None:
            return None
        lifetime_ms = token.expiry_ms - self._clock.time_ms()
        owner = parse_principal(token.owner)[1]
        return TokenCredential(owner, self._credential(mechanism, token_id), lifetime_ms)

    def _credential(self, mechanism: str, token_id: str) -> ScramCredential:
        """The SCRAM credential of a token. Computed at the first login: it takes milliseconds, and
        most tokens are used at other brokers."""
        known = self._credentials.get((mechanism, token_id))
        if known is None:
            scram = MECHANISMS[mechanism]
            # Passwords are HMACs and all differ, so the salt need not be random.
            salt = hashlib.sha256(token_id.encode()).digest()
            password = to_base64(self.hmac(token_id))
            salted = scram.salted_password(password, salt, ITERATIONS_MIN)
            known = ScramCredential.of(scram, salt, salted, ITERATIONS_MIN)
            self._credentials[mechanism, token_id] = known
        return known
