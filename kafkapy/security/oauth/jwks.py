"""Signed bearer tokens: JSON Web Key Sets, and the checks of tokens that their keys signed
(`ValidatorAccessTokenValidator`).

PyJWT (the extra `oauth`) checks signatures, and is imported on first use. The claims are checked
here, by the rules of Kafka and jose4j, because PyJWT's rules differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import orjson

from kafkapy.common.errors import ConfigError
from kafkapy.security.oauth.tokens import (
    BearerToken,
    IllegalToken,
    json_of,
    seconds_of,
    text_of,
    trimmed,
)

Jwk = Mapping[str, Any]

RSA_BITS_MIN: Final = 2048
# The algorithms that a header may name, and the kind of key (and its curve) of each. The check of
# the kind prevents the use of a public RSA key as the secret of an HMAC.
_KINDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    **{f"{kind}{bits}": ("RSA", ()) for kind in ("RS", "PS") for bits in (256, 384, 512)},
    **{f"HS{bits}": ("oct", ()) for bits in (256, 384, 512)},
    "ES256": ("EC", ("P-256",)),
    "ES384": ("EC", ("P-384",)),
    "ES512": ("EC", ("P-521",)),
    "ES256K": ("EC", ("secp256k1",)),
    "EdDSA": ("OKP", ("Ed25519", "Ed448")),
}


class UnknownKey(IllegalToken):
    """The set does not have the token's key. `key_id` is the id in the token."""

    def __init__(self, key_id: str | None) -> None:
        super().__init__(f"No key of the JWKS fits a token with key ID {key_id!r}"[:200])
        self.key_id = key_id


def parse_jwks(data: bytes) -> tuple[Jwk, ...]:
    """The keys of a set. Raises ValueError: it is malformed."""
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise ValueError('it is not a JSON Web Key Set: a list of "keys" was expected')
    return tuple(key for key in keys if isinstance(key, dict))


def check_library(key: str) -> None:
    """Check that PyJWT, which `key` requires, is installed. Raises ConfigError."""
    if find_spec("jwt") is None or find_spec("cryptography") is None:
        raise ConfigError(
            f"{key} needs the packages PyJWT and cryptography: pip install PyJWT cryptography"
        )


def key_for(header: Mapping[str, Any], keys: Sequence[Jwk]) -> Jwk:
    """The key for a token, by its header. Raises IllegalToken, UnknownKey."""
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in _KINDS:
        name = str(algorithm)[:40]
        raise IllegalToken(f"The algorithm {name} is not taken: signatures are asked for")
    if key_id is not None and not isinstance(key_id, str):
        raise IllegalToken("The key ID is not text")
    kind, curves = _KINDS[algorithm]
    for key in keys:
        if (
            key.get("kty") == kind
            and (key_id is None or key.get("kid") == key_id)
            and key.get("use", "sig") == "sig"
            and key.get("alg", algorithm) == algorithm
            and _may_verify(key)
            and (not curves or key.get("crv") in curves)
        ):
            return key
    raise UnknownKey(key_id)


def _may_verify(key: Jwk) -> bool:
    operations = key.get("key_ops")
    return operations is None or (isinstance(operations, list) and "verify" in operations)


def verified_claims(value: str, keys: Sequence[Jwk]) -> dict[str, Any]:
    """Check a token's signature with `keys`. Returns the claims. Raises IllegalToken."""
    from jwt import PyJWK, PyJWS
    from jwt.exceptions import PyJWTError

    sections = value.split(".")
    if len(sections) != 3 or not all(sections):
        raise IllegalToken("A signed token has 3 sections parted by dots")
    header = json_of(sections[0])
    if "crit" in header:
        raise IllegalToken("The header asks for an extension of JWS that is not known")
    jwk = key_for(header, keys)
    algorithm = header["alg"]
    try:
        key = PyJWK(dict(jwk), algorithm=algorithm).key
    except (PyJWTError, ValueError, TypeError) as error:
        raise IllegalToken(f"The key of the JWKS cannot be used: {error}") from None
    _check_strength(jwk["kty"], key, algorithm)
    try:
        PyJWS().decode(value, key, algorithms=[algorithm])
    except (PyJWTError, ValueError, TypeError) as error:
        raise IllegalToken(f"The signature does not hold: {error}") from None
    return json_of(sections[1])


def _check_strength(kind: str, key: Any, algorithm: str) -> None:
    """Check the size of a key, as RFC 7518 and jose4j require."""
    if kind == "RSA" and key.key_size < RSA_BITS_MIN:
        raise IllegalToken(f"The RSA key has {key.key_size} bits, not {RSA_BITS_MIN} or more")
    if kind == "oct" and len(key) * 8 < int(algorithm[2:]):
        raise IllegalToken(f"The secret has {len(key) * 8} bits, too few for {algorithm}")


class SignedRules(NamedTuple):
    """Rules for the claims of a signed token. An empty rule accepts any value, except `audiences`:
    a token with an audience is refused if none is expected, as in jose4j.
    """

    audiences: tuple[str, ...] = ()
    issuer: str = ""
    skew_s: int = 30
    scope_claim: str = "scope"
    sub_claim: str = "sub"

    def token(self, value: str, claims: Mapping[str, Any], now_ms: int) -> BearerToken:
        """The token, if its claims are valid now. Raises IllegalToken."""
        self._check_audience_and_issuer(claims)
        expires_s, issued_s = self._times(claims, now_ms // 1000)
        principal = trimmed(text_of(claims, self.sub_claim))
        return BearerToken(
            value, principal, int(expires_s) * 1000, int(issued_s) * 1000, self._scope(claims)
        )

    def _times(self, claims: Mapping[str, Any], now_s: int) -> tuple[float, float]:
        """The times of expiry and issue, in whole seconds, as in jose4j."""
        expires_s, issued_s = seconds_of(claims, "exp"), seconds_of(claims, "iat")
        if expires_s is None or issued_s is None:
            raise IllegalToken("It must say when it was issued (iat) and when it expires (exp)")
        if expires_s < 0 or issued_s < 0:
            raise IllegalToken("Times (iat, exp) must not be negative")
        if now_s - self.skew_s >= int(expires_s):
            raise IllegalToken(f"It expired {now_s - int(expires_s)} s ago")
        begins_s = seconds_of(claims, "nbf")
        if begins_s is not None and now_s + self.skew_s < int(begins_s):
            raise IllegalToken(f"It is not valid before {int(begins_s) - now_s} s from now")
        if expires_s < issued_s or (begins_s is not None and expires_s < begins_s):
            raise IllegalToken("It expires before it begins")
        return expires_s, issued_s

    def _check_audience_and_issuer(self, claims: Mapping[str, Any]) -> None:
        claim = claims.get("aud")
        audiences = [claim] if isinstance(claim, str) else claim
        if audiences is not None and not isinstance(audiences, list):
            raise IllegalToken("The 'aud' claim was not text or a list of it")
        if audiences is None and self.audiences:
            raise IllegalToken(f"It names no audience; expected is {_any_of(self.audiences)}")
        if audiences is not None and not any(item in self.audiences for item in audiences):
            expected = _any_of(self.audiences) if self.audiences else "none"
            raise IllegalToken(f"It is for audience {str(claim)[:100]}; expected is {expected}")
        issuer = claims.get("iss")
        if self.issuer and issuer != self.issuer:
            raise IllegalToken(f"Its issuer is {str(issuer)[:100]}; expected is {self.issuer}")

    def _scope(self, claims: Mapping[str, Any]) -> frozenset[str]:
        claim = claims.get(self.scope_claim)
        words = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
        scopes = [trimmed(word) for word in words if isinstance(word, str)]
        if len(scopes) != len(words) or not all(scopes) or len(set(scopes)) != len(scopes):
            raise IllegalToken(f"The '{self.scope_claim}' claim has what is no scope, or one twice")
        return frozenset(scopes)


def _any_of(values: Sequence[str]) -> str:
    return " or ".join(values)


class SignedValidator:
    """Accepts tokens that one of `keys` signed, and that `rules` allow."""

    def __init__(
        self,
        rules: SignedRules,
        keys: Callable[[], Sequence[Jwk]],
        on_unknown_key: Callable[[str], None],
    ) -> None:
        """`on_unknown_key` is called with a key ID that is not in `keys`."""
        self._rules = rules
        self._keys = keys
        self._on_unknown_key = on_unknown_key

    def validate(self, value: str, now_ms: int) -> BearerToken:
        """The token, if it is valid now. Raises IllegalToken."""
        try:
            claims = verified_claims(value, self._keys())
        except UnknownKey as error:
            if error.key_id:
                self._on_unknown_key(error.key_id)
            raise
        return self._rules.token(value, claims, now_ms)
