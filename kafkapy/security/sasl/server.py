"""The broker's half of SASL: PLAIN (`PlainSaslServer`) and SCRAM (`ScramSaslServer`), without a
connection.

    server = ScramServer(ScramMechanism.SCRAM_SHA_256, credential_of, nonce)
    challenge = server.evaluate(token)      # until server.username is known
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from kafkapy.common.errors import KafkapyError
from kafkapy.security.sasl.scram import (
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    from_base64,
    to_base64,
    unescape,
)

_OTHER_AUTHORIZATION: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
_CLIENT_FIRST: Final = re.compile(
    r"(?P<gs2>n,(?:a=(?P<authzid>[^,]*))?,)"
    r"(?P<bare>n=(?P<name>[^,]+),r=(?P<nonce>[^,]+)(?P<extensions>(?:,.*)?))"
)
_CLIENT_FINAL: Final = re.compile(
    r"(?P<without_proof>c=(?P<binding>[^,]+),r=(?P<nonce>[^,]+)(?:,.*)?),p=(?P<proof>[^,]+)"
)

CredentialOf = Callable[[str], ScramCredential | None]
TOKEN_AUTH: Final = "tokenauth"


class TokenCredential(NamedTuple):
    """A delegation token for a login: its owner, its credential, and its remaining lifetime."""

    owner: str
    credential: ScramCredential
    lifetime_ms: int


TokenOf = Callable[[str], TokenCredential | None]


class Refused(KafkapyError):
    """The login is refused, and the client gets the reason (`SaslAuthenticationException`)."""


class RefusedSilently(KafkapyError):
    """The login is refused. The reason is for the log only (`SaslException`)."""


class SaslServer(Protocol):
    """One login. `username` is None until it has succeeded. `lifetime_ms` is the remaining lifetime
    of the client's credentials then; None for no limit.
    """

    username: str | None
    lifetime_ms: int | None

    def evaluate(self, token: bytes) -> bytes | None:
        """The answer to a message; None if there is none, which differs from an empty answer if
        messages are bare frames. Raises Refused, RefusedSilently.
        """


class PlainServer:
    """PLAIN: `[authzid] NUL authcid NUL passwd`."""

    lifetime_ms: int | None = None

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.username: str | None = None
        self._passwords = passwords

    def evaluate(self, token: bytes) -> bytes:
        """Check the only message. The answer is empty."""
        parts = token.decode(errors="replace").split("\0")
        if len(parts) != 3:
            raise RefusedSilently(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            )
        authorization_id, username, password = parts
        if not username:
            raise Refused("Authentication failed: username not specified")
        if not password:
            raise Refused("Authentication failed: password not specified")
        expected = self._passwords.get(username)
        # Compared for an unknown user too: the time must not reveal which users exist.
        matches = hmac.compare_digest((expected or "").encode(), password.encode())
        if expected is None or not matches:
            raise Refused("Authentication failed: Invalid username or password")
        if authorization_id not in ("", username):
            raise Refused(_OTHER_AUTHORIZATION)
        self.username = username
        return b""


class ScramServer:
    """SCRAM: two messages, and a proof of each side. A delegation token (KIP-48) logs in its
    owner.
    """

    lifetime_ms: int | None = None

    def __init__(
        self,
        mechanism: ScramMechanism,
        credential_of: CredentialOf,
        nonce: str,
        token_of: TokenOf = lambda token_id: None,
    ) -> None:
        """`nonce` must be unique."""
        self.username: str | None = None
        self.is_token = False
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._token_of = token_of
        self._nonce = nonce
        self._user = ""
        self._gs2_header = ""
        self._first_bare = ""
        self._server_first = ""
        self._credential: ScramCredential | None = None

    def evaluate(self, token: bytes) -> bytes:
        """The server's first message, then its final one."""
        try:
            text = token.decode()
            return (
                self._evaluate_first(text)
                if self._credential is None
                else self._evaluate_final(text)
            )
        except ValueError as error:  # not UTF-8, not base64, not escaped
            raise RefusedSilently(f"Invalid SCRAM message: {error}") from None

    def _evaluate_first(self, text: str) -> bytes:
        fields = _CLIENT_FIRST.fullmatch(text)
        if fields is None:
            raise RefusedSilently("Invalid SCRAM client first message format")
        name = unescape(fields["name"])
        self.is_token = _has_tokenauth(fields["extensions"])
        credential = self._credential_for(name)
        if fields["authzid"] and unescape(fields["authzid"]) != name:
            raise Refused(_OTHER_AUTHORIZATION)
        if credential.iterations < ITERATIONS_MIN:
            raise RefusedSilently(
                f"Iterations {credential.iterations} is less than the minimum {ITERATIONS_MIN}"
                f" for {self._mechanism.config}"
            )
        self._credential = credential
        self._gs2_header, self._first_bare = fields["gs2"], fields["bare"]
        self._nonce = fields["nonce"] + self._nonce
        salt = to_base64(credential.salt)
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._server_first.encode()

    def _credential_for(self, name: str) -> ScramCredential:
        """The credential of the user in the client's message."""
        if not self.is_token:
            credential = self._credential_of(name)
            if credential is None:
                raise RefusedSilently("Authentication failed: Invalid user credentials")
            self._user = name
            return credential
        token = self._token_of(name)
        if token is None:
            raise RefusedSilently(f"Token Authentication failed: Invalid tokenId : {name}")
        if token.lifetime_ms <= 0:
            raise RefusedSilently(f"Token Authentication failed: tokenId : {name} has expired")
        self._user, self.lifetime_ms = token.owner, token.lifetime_ms
        return token.credential

    def _evaluate_final(self, text: str) -> bytes:
        fields = _CLIENT_FINAL.fullmatch(text)
        if fields is None:
            raise RefusedSilently("Invalid SCRAM client final message format")
        if fields["nonce"] != self._nonce:
            raise RefusedSilently("Invalid client nonce in the final client message.")
        if from_base64(fields["binding"]) != self._gs2_header.encode():
            raise RefusedSilently("Invalid channel binding in the final client message.")
        credential, mechanism = self._credential, self._mechanism
        assert credential is not None
        auth = f"{self._first_bare},{self._server_first},{fields['without_proof']}".encode()
        signature = mechanism.hmac(credential.stored_key, auth)
        proof = from_base64(fields["proof"])
        if len(proof) != len(signature):
            raise RefusedSilently("Invalid client credentials")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(mechanism.stored_key(client_key), credential.stored_key):
            raise RefusedSilently("Invalid client credentials")
        self.username = self._user
        return f"v={to_base64(mechanism.hmac(credential.server_key, auth))}".encode()


def _has_tokenauth(extensions: str) -> bool:
    """Whether the first message marks its user as a token (`ScramExtensions`)."""
    fields = dict(item.partition("=")[::2] for item in extensions.split(","))
    return fields.get(TOKEN_AUTH, "").lower() == "true"
