"""Bearer tokens, and unsecured JWS (`OAuthBearerUnsecuredJws`), whose claims are not signed: for
tests, and for trusted networks.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from kafkapy.common.errors import ConfigError, KafkapyError

MECHANISM: Final = "OAUTHBEARER"
INVALID_TOKEN: Final = "invalid_token"
INSUFFICIENT_SCOPE: Final = "insufficient_scope"
EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7E \t\r\n]+")
_SCOPE: Final = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+")
_SECONDS_MAX: Final = 253_402_300_799.0
"""The last second of the year 9999. It replaces later times, so that every time fits a field of the
protocol and a timer."""
_TRIMMED: Final = "".join(map(chr, range(0x21)))
_NOT_BASE64URL: Final = re.compile(r"[^A-Za-z0-9_=-]")


class BearerToken(NamedTuple):
    """A token as it is sent, and its claims. Times are ms since the epoch."""

    value: str
    principal: str
    expires_ms: int
    starts_ms: int | None = None
    scope: frozenset[str] = frozenset()
    extensions: tuple[tuple[str, str], ...] = ()


class IllegalToken(KafkapyError):
    """A token is refused. The text is for the log; the client gets `status` and `scope`."""

    def __init__(self, reason: str, status: str = INVALID_TOKEN, scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


def json_of(section: str) -> dict[str, Any]:
    """The JSON object in a section of a token. Raises IllegalToken."""
    if _NOT_BASE64URL.search(section):
        raise IllegalToken("malformed Base64 URL encoded value")
    padded = section.rstrip("=") + "=" * (-len(section.rstrip("=")) % 4)
    try:
        found = orjson.loads(base64.urlsafe_b64decode(padded))
    except binascii.Error:
        raise IllegalToken("malformed Base64 URL encoded value") from None
    except orjson.JSONDecodeError:
        raise IllegalToken("malformed JSON") from None
    if not isinstance(found, dict):
        raise IllegalToken("malformed JSON: not an object")
    return found


def section_of(content: Mapping[str, Any]) -> str:
    """A JSON object as a section of a token."""
    return base64.urlsafe_b64encode(orjson.dumps(content)).rstrip(b"=").decode()


def seconds_of(claims: Mapping[str, Any], name: str) -> float | None:
    """A claim that is a time; None if it is absent. Raises IllegalToken."""
    value = claims.get(name)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise IllegalToken(f"The '{name}' claim was not a number: {_abbreviate(value)}")
    return max(-_SECONDS_MAX, min(float(value), _SECONDS_MAX))


def text_of(claims: Mapping[str, Any], name: str) -> str:
    """A claim that must be text. Raises IllegalToken."""
    value = claims.get(name)
    if not isinstance(value, str) or not trimmed(value):
        raise IllegalToken(f"The '{name}' claim must be text, not {_abbreviate(value)}")
    return value


def trimmed(text: str) -> str:
    """A claim without the characters up to U+0020 around it, as Java's `String.trim`. `str.strip`
    removes other spaces too, which distinguish users.
    """
    return text.strip(_TRIMMED)


def _abbreviate(value: object) -> str:
    return repr(value)[:100]


def unsecured_token(
    value: str, principal_claim: str, scope_claim: str
) -> tuple[BearerToken, dict[str, Any]]:
    """Parse an unsecured JWS and its claims, without a check of its times.

    Raises:
        IllegalToken: it is no JWS, or has no principal or expiry.
    """
    sections = value.split(".")
    if len(sections) != 3 or not (sections[0] and sections[1]):
        raise IllegalToken("Unsecured JWS must have 3 sections parted by dots, the third empty")
    header, claims = json_of(sections[0]), json_of(sections[1])
    if header.get("alg") != "none":
        raise IllegalToken("Unsecured JWS must have 'none' for an algorithm")
    if sections[2]:
        raise IllegalToken("Unsecured JWS must not contain a digital signature")
    expires_s = seconds_of(claims, "exp")
    if expires_s is None:
        raise IllegalToken("No expiration time in JWT")
    starts_s = seconds_of(claims, "iat")
    token = BearerToken(
        value,
        text_of(claims, principal_claim),
        round(expires_s * 1000),
        None if starts_s is None else round(starts_s * 1000),
        _scope(claims, scope_claim),
    )
    return token, claims


def _scope(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    value = claims.get(name)
    if value is None:
        return frozenset()
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise IllegalToken(f"The '{name}' claim was not text or a list of it: {_abbreviate(value)}")
    return frozenset(trimmed(word) for word in words if trimmed(word))


def encode_unsecured(claims: Mapping[str, Any]) -> str:
    """Encode claims as an unsecured JWS."""
    return f"{section_of({'alg': 'none'})}.{section_of(claims)}."


class UnsecuredRules(NamedTuple):
    """Rules for an unsecured token (`OAuthBearerUnsecuredValidatorCallbackHandler`)."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    skew_ms: int = 0

    def validate(self, value: str, now_ms: int) -> BearerToken:
        """The token, if it is valid now. Raises IllegalToken."""
        token, _ = unsecured_token(value, self.principal_claim, self.scope_claim)
        starts_ms = token.starts_ms
        if starts_ms is not None and now_ms + self.skew_ms < starts_ms:
            raise IllegalToken(f"It was issued {starts_ms - now_ms} ms from now")
        if now_ms - self.skew_ms >= token.expires_ms:
            raise IllegalToken(f"It expired {now_ms - token.expires_ms} ms ago")
        if starts_ms is not None and token.expires_ms <= starts_ms:
            raise IllegalToken("It expires before it is issued")
        missing = [word for word in self.required_scope if word not in token.scope]
        if missing:
            required = f"[{', '.join(self.required_scope)}]"
            raise IllegalToken(f"It lacks scope {missing[0]}", INSUFFICIENT_SCOPE, required)
        return token


def unsecured_rules(options: Mapping[str, str], key: str) -> UnsecuredRules:
    """The rules of a JAAS line, which is the value of `key`.

    Raises:
        ConfigError: names the option and its fault.
    """
    prefix = "unsecuredValidator"
    skew = options.get(f"{prefix}AllowableClockSkewMs") or "0"
    if not (skew.isascii() and skew.isdigit()):
        raise ConfigError(
            f"{key}: {prefix}AllowableClockSkewMs={skew} is not a number of milliseconds, 0 or more"
        )
    scope = options.get(f"{prefix}RequiredScope", "").split()
    for word in scope:
        if not _SCOPE.fullmatch(word):
            raise ConfigError(f"{key}: {prefix}RequiredScope: {word} is not a scope")
    return UnsecuredRules(
        options.get(f"{prefix}PrincipalClaimName", "").strip() or "sub",
        options.get(f"{prefix}ScopeClaimName", "").strip() or "scope",
        tuple(dict.fromkeys(scope)),
        int(skew),
    )


def check_extensions(extensions: Sequence[tuple[str, str]]) -> None:
    """Check that extensions can be sent. Raises ConfigError."""
    for name, value in extensions:
        if name == "auth" or not EXTENSION_NAME.fullmatch(name):
            raise ConfigError(f"SASL extension name {name} is invalid: letters only, and not auth")
        if not EXTENSION_VALUE.fullmatch(value):
            raise ConfigError(f"SASL extension {name} has a value that is invalid: {value!r}")
