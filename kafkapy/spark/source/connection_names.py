"""The `ssl.*` and `sasl.*` properties of Java's clients, by name. Pure.

A mistyped one would have no effect: with `ssl.truststore.locaton`, a client trusts the certificate
authorities of the system.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from kafkapy.common.errors import ConfigError

# Those of Kafka 3.9 and 4.4.
_NAMES: Final = {
    "ssl": (
        *("cipher.suites", "enabled.protocols", "endpoint.identification.algorithm"),
        *("engine.factory.class", "key.password", "keymanager.algorithm", "protocol", "provider"),
        *("secure.random.implementation", "trustmanager.algorithm"),
    ),
    "ssl.keystore": ("certificate.chain", "key", "location", "password", "type"),
    "ssl.truststore": ("certificates", "location", "password", "type"),
    "sasl": ("client.callback.handler.class", "jaas.config", "mechanism"),
    "sasl.kerberos": (
        *("kinit.cmd", "min.time.before.relogin", "service.name", "ticket.renew.jitter"),
        "ticket.renew.window.factor",
    ),
    "sasl.login": (
        *("callback.handler.class", "class", "connect.timeout.ms", "read.timeout.ms"),
        *("refresh.buffer.seconds", "refresh.min.period.seconds", "refresh.window.factor"),
        *("refresh.window.jitter", "retry.backoff.max.ms", "retry.backoff.ms"),
    ),
    "sasl.oauthbearer": (
        *("allow.unverified.audience", "allow.unverified.issuer", "assertion.algorithm"),
        *("assertion.claim.aud", "assertion.claim.exp.seconds", "assertion.claim.iss"),
        *("assertion.claim.jti.include", "assertion.claim.nbf.seconds", "assertion.claim.sub"),
        *("assertion.file", "assertion.private.key.file", "assertion.private.key.passphrase"),
        *("assertion.template.file", "client.credentials.client.id"),
        *("client.credentials.client.secret", "clock.skew.seconds", "expected.audience"),
        *("expected.issuer", "header.urlencode", "jwks.endpoint.refresh.ms"),
        *("jwks.endpoint.retry.backoff.max.ms", "jwks.endpoint.retry.backoff.ms"),
        *("jwks.endpoint.url", "jwt.retriever.class", "jwt.validator.class", "scope"),
        *("scope.claim.name", "sub.claim.name", "token.endpoint.url"),
    ),
}
_KNOWN: Final = frozenset(f"{group}.{name}" for group, names in _NAMES.items() for name in names)


def refuse_unknown_connection_names(properties: Iterable[str]) -> None:
    """Check the names of `ssl.*` and `sasl.*` properties. Others are ignored.

    Raises:
        ConfigError: names the option, and a similar one.
    """
    for name in properties:
        if name.startswith(("ssl.", "sasl.")) and name not in _KNOWN:
            matches = difflib.get_close_matches(name, _KNOWN, n=1)
            hint = f". Did you mean 'kafka.{matches[0]}'?" if matches else ""
            raise ConfigError(f"Unknown option 'kafka.{name}'{hint}")
