"""Token sources of a client: unsecured claims, client credentials, or a file."""

from __future__ import annotations

import base64
import re
from typing import Any

import orjson
import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties, of_listener
from kafkapy.security.oauth.login import (
    MODULE,
    TOKEN_URL,
    LoginSettings,
    fetched_token,
    login_settings,
    token_request,
    unsecured_login_token,
)
from kafkapy.security.oauth.refresh import RefreshWindow
from kafkapy.security.oauth.tokens import encode_unsecured, json_of

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
FETCHING = f"{PACKAGE}.secured.OAuthBearerLoginCallbackHandler"
URL = "http://issuer/token"


def settings(line: str, **more: str) -> LoginSettings:
    """Those of a JAAS line; `_` stands for a dot."""
    given = {key.replace("_", "."): value for key, value in more.items()}
    line = f"{MODULE} required {line};"
    return login_settings(PrefixedProperties({"sasl.jaas.config": line, **given}))


def fetching(line: str, url: str = URL, **more: str) -> LoginSettings:
    handler = {"sasl_login_callback_handler_class": FETCHING, TOKEN_URL.replace(".", "_"): url}
    return settings(line, **handler, **more)


def test_claims_of_the_line() -> None:
    token = unsecured_login_token(
        settings(
            'unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_n="2"'
            ' unsecuredLoginNumberClaim_x="2.5" unsecuredLoginListClaim_scope="|a|b c"'
            ' unsecuredLoginLifetimeSeconds="60" unsecuredLoginExtension_traceId="7"'
        ),
        NOW_MS,
    )
    head, claims, signature = token.value.split(".")
    assert (json_of(head), signature) == ({"alg": "none"}, "")
    assert json_of(claims) == {
        "sub": "alice",
        "n": 2,
        "x": 2.5,
        "scope": ["a", "b c"],
        "iat": NOW_S,
        "exp": NOW_S + 60,
    }
    assert (token.principal, token.scope) == ("alice", {"a", "b c"})
    assert (token.starts_ms, token.expires_ms) == (NOW_MS, NOW_MS + 60_000)
    assert token.extensions == (("traceId", "7"),)


def test_an_hour_and_other_names() -> None:
    line = 'unsecuredLoginStringClaim_name="bob" unsecuredLoginPrincipalClaimName="name"'
    token = unsecured_login_token(settings(line), NOW_MS)
    assert (token.principal, token.expires_ms) == ("bob", NOW_MS + 3_600_000)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "set unsecuredLoginStringClaim_sub to who logs in"),
        ('unsecuredLoginStringClaim_sub=" "', "The 'sub' claim must be text"),
        ('unsecuredLoginStringClaim_exp="1"', "the claim exp cannot be set"),
        ('unsecuredLoginNumberClaim_n="x"', "unsecuredLoginNumberClaim_n=x is not a number"),
        ('unsecuredLoginLifetimeSeconds="x"', "unsecuredLoginLifetimeSeconds=x is not a number"),
        ('unsecuredLoginStringClaim_sub="a" unsecuredLoginExtension_auth="x"', "extension name"),
    ],
)
def test_lines_that_make_no_token(line: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        unsecured_login_token(settings(line), NOW_MS)


def test_client_credentials() -> None:
    asked = token_request(
        fetching(
            'clientId="a b" clientSecret="s:ü" scope="use more" ssl.truststore.location="/t.pem"',
            sasl_login_connect_timeout_ms="1500",
            sasl_login_read_timeout_ms="2500",
        )
    )
    headers = dict(asked.headers)
    secret = base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode()
    assert (asked.url, secret) == (URL, "a b:s:ü")
    assert asked.body == b"grant_type=client_credentials&scope=use+more"
    assert (asked.connect_timeout_s, asked.read_timeout_s) == (1.5, 2.5)
    assert asked.tls == (("ssl.truststore.location", "/t.pem"),)
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"


def test_a_file_needs_no_credentials() -> None:
    asked = token_request(fetching("", "file:///token"))
    assert (asked.url, asked.body, asked.headers) == ("file:///token", None, ())


@pytest.mark.parametrize(
    ("line", "said"), [('clientSecret="s"', "option clientId"), ('clientId="c"', "clientSecret")]
)
def test_credentials_that_are_missing(line: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        token_request(fetching(line))


def test_a_token_that_was_fetched() -> None:
    value = encode_unsecured({"name": "bob", "iat": NOW_S, "exp": NOW_S + 60}) + "sign"
    how = fetching('extension_pool="p"', sasl_oauthbearer_sub_claim_name="name")
    token = fetched_token(how, orjson.dumps({"access_token": f" {value}\n"}))
    assert (token.value, token.principal) == (value, "bob")
    assert (token.starts_ms, token.expires_ms) == (NOW_MS, NOW_MS + 60_000)
    assert token.extensions == (("pool", "p"),)
    file = how._replace(url="file:///token")
    assert fetched_token(file, f"{value}\n".encode()).value == value


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"<html>", "the answer has no access_token"),
        (b"[]", "the answer has no access_token"),
        (b'{"access_token":" "}', "the answer has no access_token"),
        (b'{"access_token":"opaque"}', "it is not a JWT of 3 sections"),
        (b'{"access_token":"a.e30.c"}', r"it does not say when it expires \(exp\)"),
        (b'{"access_token":"a.eyJleHAiOjF9.c"}', "The 'sub' claim must be text"),
    ],
)
def test_answers_without_a_token(answer: bytes, said: str) -> None:
    with pytest.raises(ConfigError, match=f"{re.escape(f'{TOKEN_URL}={URL}')}: .*{said}"):
        fetched_token(fetching(""), answer)


def test_properties_of_a_listener() -> None:
    prefix = "listener.name.x.oauthbearer."
    properties = of_listener(
        {
            f"{prefix}sasl.jaas.config": f'{MODULE} required unsecuredLoginStringClaim_sub="b";',
            f"{prefix}sasl.login.refresh.window.factor": "0.5",
            "sasl.login.refresh.window.jitter": "0.1",
            "listener.name.x.sasl.login.refresh.min.period.seconds": "1",
            "sasl.login.refresh.buffer.seconds": "2",
        },
        "X",
    ).with_prefixes(prefix)
    found = login_settings(properties)
    assert found.window == RefreshWindow(0.5, 0.1, 1, 2)
    assert unsecured_login_token(found, NOW_MS).principal == "b"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sasl_jaas_config": ""}, "sasl.jaas.config must be a line of OAuthBearerLoginModule"),
        ({"sasl_jaas_config": 'PlainLoginModule required username="a";'}, "must be a line of"),
        ({"sasl_login_callback_handler_class": "x.Y"}, "handler.class=x.Y: allowed are"),
        (
            {"sasl_login_callback_handler_class": FETCHING},
            "sasl.oauthbearer.token.endpoint.url= must be a URL",
        ),
        ({"sasl_login_read_timeout_ms": "-1"}, "sasl.login.read.timeout.ms=-1 is not a number"),
        ({"sasl_login_refresh_window_factor": "2"}, "factor=2: allowed is 0.5 to 1.0"),
        ({"sasl_login_refresh_window_jitter": "x"}, "jitter=x: allowed is 0.0 to 0.25"),
    ],
)
def test_properties_that_are_wrong(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settings("", **given)
