"""Bearer tokens of a client, from Kafka's properties and a JAAS line: created here
(`OAuthBearerUnsecuredLoginCallbackHandler`), requested from a token endpoint with client
credentials, or read from a file (`OAuthBearerLoginCallbackHandler`, KIP-768). `http_fetch` does the
I/O.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus

import orjson

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.oauth.http_request import HttpRequest, endpoint_url
from kafkapy.security.oauth.refresh import RefreshWindow
from kafkapy.security.oauth.tokens import (
    BearerToken,
    IllegalToken,
    check_extensions,
    encode_unsecured,
    json_of,
    seconds_of,
    text_of,
    unsecured_token,
)
from kafkapy.security.sasl.jaas import jaas_options

MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
HANDLER: Final = "sasl.login.callback.handler.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_ENDPOINT_HANDLERS: Final = tuple(
    f"{_PACKAGE}.{part}OAuthBearerLoginCallbackHandler" for part in ("", "secured.")
)
_UNSECURED_HANDLERS: Final = (
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
    f"{_PACKAGE}.OAuthBearerUnsecuredLoginCallbackHandler",
)
_UNSECURED: Final = "unsecuredLogin"
_EXTENSION: Final = "unsecuredLoginExtension_"
_LIFETIME_S: Final = 3600
_RESERVED_CLAIMS: Final = ("exp", "iat")


class LoginSettings(NamedTuple):
    """`options` are those of the JAAS line at `key`. `url` is empty if tokens are created here.
    Times are ms.
    """

    key: str
    options: tuple[tuple[str, str], ...]
    url: str = ""
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 10_000
    retry_ms: int = 100
    retry_max_ms: int = 10_000
    scope_claim: str = "scope"
    sub_claim: str = "sub"
    window: RefreshWindow = RefreshWindow()


def login_settings(properties: PrefixedProperties) -> LoginSettings:
    """Read `sasl.jaas.config` and the related `sasl.login.*` and `sasl.oauthbearer.*`.

    Raises:
        ConfigError: names the property, its value and what is allowed.
    """
    key = properties.key("sasl.jaas.config")
    line = properties.text("sasl.jaas.config")
    if "OAuthBearerLoginModule" not in line:
        raise ConfigError(
            f"{key} must be a line of OAuthBearerLoginModule, for example: {MODULE} required"
            ' unsecuredLoginStringClaim_sub="alice";'
        )
    options = tuple(sorted(jaas_options(line).items()))
    handler = properties.text(HANDLER).strip()
    if handler and handler not in (*_ENDPOINT_HANDLERS, *_UNSECURED_HANDLERS):
        raise ConfigError(
            f"{properties.key(HANDLER)}={handler}: allowed are"
            f" {', '.join((*_ENDPOINT_HANDLERS, *_UNSECURED_HANDLERS))}"
        )
    url = ""
    if handler in _ENDPOINT_HANDLERS:
        url = endpoint_url(properties, TOKEN_URL)
    return LoginSettings(
        key,
        options,
        url,
        properties.number("sasl.login.connect.timeout.ms", 10_000),
        properties.number("sasl.login.read.timeout.ms", 10_000),
        properties.number("sasl.login.retry.backoff.ms", 100),
        properties.number("sasl.login.retry.backoff.max.ms", 10_000),
        properties.text("sasl.oauthbearer.scope.claim.name", "scope"),
        properties.text("sasl.oauthbearer.sub.claim.name", "sub"),
        _window(properties),
    )


def _window(properties: PrefixedProperties) -> RefreshWindow:
    name = "sasl.login.refresh"
    return RefreshWindow(
        _fraction(properties, f"{name}.window.factor", 0.5, 1.0, 0.8),
        _fraction(properties, f"{name}.window.jitter", 0.0, 0.25, 0.05),
        properties.number(f"{name}.min.period.seconds", 60),
        properties.number(f"{name}.buffer.seconds", 300),
    )


def _fraction(
    properties: PrefixedProperties, name: str, minimum: float, maximum: float, default: float
) -> float:
    text = properties.text(name).strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not minimum <= value <= maximum:
        raise ConfigError(f"{properties.key(name)}={text}: allowed is {minimum} to {maximum}")
    return value


# tokens that are created here


def unsecured_login_token(settings: LoginSettings, now_ms: int) -> BearerToken:
    """Create an unsecured token with the claims of the JAAS line. Raises ConfigError."""
    options, key = dict(settings.options), settings.key
    lifetime = options.get(f"{_UNSECURED}LifetimeSeconds") or str(_LIFETIME_S)
    if not re.fullmatch(r"-?[0-9]{1,10}", lifetime):
        raise ConfigError(f"{key}: {_UNSECURED}LifetimeSeconds={lifetime[:40]} is not a number")
    now_s = now_ms / 1000
    claims: dict[str, Any] = {"exp": now_s + int(lifetime), "iat": now_s}
    for name, value in options.items():
        claims |= _claim(name, value, key)
    principal = options.get(f"{_UNSECURED}PrincipalClaimName", "").strip() or "sub"
    scope = options.get(f"{_UNSECURED}ScopeClaimName", "").strip() or "scope"
    try:
        token, _ = unsecured_token(encode_unsecured(claims), principal, scope)
    except IllegalToken as illegal:
        raise ConfigError(
            f"{key}: {illegal}; set {_UNSECURED}StringClaim_{principal} to who logs in"
        ) from None
    return token._replace(extensions=_extensions(options, _EXTENSION))


def _claim(option: str, value: str, key: str) -> dict[str, Any]:
    """The claim that an option sets; empty for other options."""
    kind, separator, name = option.removeprefix(_UNSECURED).partition("Claim_")
    if (
        not option.startswith(_UNSECURED)
        or not separator
        or kind not in ("String", "Number", "List")
    ):
        return {}
    if name in _RESERVED_CLAIMS:
        raise ConfigError(f"{key}: the claim {name} cannot be set: it is the time")
    if kind == "String":
        return {name: value}
    if kind == "List":  # its first character is the separator
        return {name: value[1:].split(value[0]) if value else []}
    try:
        return {name: int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else float(value)}
    except ValueError:
        raise ConfigError(f"{key}: {option}={value} is not a number") from None


def _extensions(options: Mapping[str, str], prefix: str) -> tuple[tuple[str, str], ...]:
    found = tuple((k.removeprefix(prefix), v) for k, v in options.items() if k.startswith(prefix))
    check_extensions(found)
    return found


# tokens that are fetched


def token_request(settings: LoginSettings) -> HttpRequest:
    """The request to the token endpoint, or for the file. Raises ConfigError."""
    options, key = dict(settings.options), settings.key
    times = (settings.connect_timeout_ms / 1000, settings.read_timeout_ms / 1000)
    tls = tuple((k, v) for k, v in settings.options if k.startswith("ssl."))
    if settings.url.startswith("file:"):
        return HttpRequest(settings.url, (), None, *times, tls)
    for name in ("clientId", "clientSecret"):
        if not options.get(name, "").strip():
            raise ConfigError(f"{key} must have the option {name} for {TOKEN_URL}={settings.url}")
    secret = f"{options['clientId'].strip()}:{options['clientSecret'].strip()}"
    body = "grant_type=client_credentials"
    scope = options.get("scope", "").strip()
    if scope:
        body += f"&scope={quote_plus(scope)}"
    headers = (
        ("Accept", "application/json"),
        ("Authorization", f"Basic {base64.b64encode(secret.encode()).decode()}"),
        ("Cache-Control", "no-cache"),
        ("Content-Type", "application/x-www-form-urlencoded"),
    )
    return HttpRequest(settings.url, headers, body.encode(), *times, tls)


def fetched_token(settings: LoginSettings, data: bytes) -> BearerToken:
    """The token in the endpoint's response, or in the file. Only the broker checks its signature.
    Raises ConfigError: the token is missing or malformed.
    """
    where = f"{TOKEN_URL}={settings.url}"
    text = _token_text(data, settings.url, where)
    try:
        sections = text.split(".")
        if len(sections) != 3:
            raise IllegalToken("it is not a JWT of 3 sections")
        claims = json_of(sections[1])
        expires_s, issued_s = seconds_of(claims, "exp"), seconds_of(claims, "iat")
        if expires_s is None:
            raise IllegalToken("it does not say when it expires (exp)")
        principal = text_of(claims, settings.sub_claim)
    except IllegalToken as illegal:
        raise ConfigError(f"{where}: the token cannot be used: {illegal}") from None
    return BearerToken(
        text,
        principal,
        round(expires_s * 1000),
        None if issued_s is None else round(issued_s * 1000),
        extensions=_extensions(dict(settings.options), "extension_"),
    )


def _token_text(data: bytes, url: str, where: str) -> str:
    """The token as text. Raises ConfigError: the response has none."""
    if url.startswith("file:"):
        return data.decode(errors="replace").strip()
    try:
        answer = orjson.loads(data)
    except orjson.JSONDecodeError:
        answer = None
    text = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f"{where}: the answer has no access_token")
    return text.strip()
