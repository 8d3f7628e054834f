"""Signed tokens: whose signatures hold, and what their claims must say."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kafkapy.common.errors import ConfigError
from kafkapy.security.oauth import jwks as oauth_jwks
from kafkapy.security.oauth.jwks import (
    Jwk,
    SignedRules,
    SignedValidator,
    UnknownKey,
    check_library,
    parse_jwks,
    verified_claims,
)
from kafkapy.security.oauth.tokens import IllegalToken, encode_unsecured
from tests.harness.security.token_issuer import public_jwk, public_pem, rsa_key

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
RSA, OTHER, EC = rsa_key(), rsa_key(), ec.generate_private_key(ec.SECP256R1())
KEYS: list[Jwk] = [public_jwk(RSA, "rsa"), public_jwk(EC, "ec")]
SECRET = b"s" * 32


def claims(**more: Any) -> dict[str, Any]:
    """Good ones; a claim that is None is left out."""
    whole = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60, **more}
    return {name: value for name, value in whole.items() if value is not None}


def signed(key: Any = RSA, algorithm: str = "RS256", **headers: Any) -> str:
    return jwt.encode(claims(), key, algorithm, headers={"kid": "rsa", **headers})


def section(content: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(content)).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "value",
    [
        signed(),
        signed(algorithm="RS512"),
        signed(algorithm="PS256"),
        signed(EC, "ES256", kid="ec"),
        jwt.encode(claims(), RSA, "RS256"),  # names no key: the first of its kind
        jwt.encode(claims(), EC, "ES256"),
    ],
)
def test_signatures_that_hold(value: str) -> None:
    assert verified_claims(value, KEYS) == claims()


def test_a_secret_that_is_long_enough() -> None:
    shared = base64.urlsafe_b64encode(SECRET).rstrip(b"=").decode()
    keys = [{"kty": "oct", "k": shared, "kid": "rsa"}]
    assert verified_claims(signed(SECRET, "HS256"), keys) == claims()
    keys = [{"kty": "oct", "k": shared[:10], "kid": "rsa"}]
    with pytest.raises(IllegalToken, match="too few for HS256"):
        verified_claims(signed(SECRET, "HS256"), keys)


def test_without_a_signature_nothing_is_taken() -> None:
    for value in (encode_unsecured(claims()), f"{encode_unsecured(claims())}abcd"):
        with pytest.raises(IllegalToken):
            verified_claims(value, KEYS)
    bare = section({"alg": "none", "kid": "rsa"}) + "." + section(claims()) + ".abcd"
    with pytest.raises(IllegalToken, match="none is not taken"):
        verified_claims(bare, KEYS)


def test_a_public_key_is_no_secret() -> None:
    text = f"{section({'alg': 'HS256', 'kid': 'rsa'})}.{section(claims())}"
    for secret in (public_pem(RSA), orjson.dumps(KEYS[0])):
        mac = hmac.new(secret, text.encode(), hashlib.sha256).digest()
        value = f"{text}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
        with pytest.raises(UnknownKey):
            verified_claims(value, KEYS)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (signed(OTHER), "The signature does not hold"),
        (signed()[:-6] + "AAAAAA", "The signature does not hold"),
        (signed() + "!", "The signature does not hold"),
        (signed(EC, "ES256"), "No key of the JWKS fits"),  # the key ID is of the other
        (signed(kid="gone"), "No key of the JWKS fits a token with key ID 'gone'"),
        (section({"alg": ["RS256"]}) + ".e30.eA", "is not taken"),
        (section({"alg": "RS256", "kid": 5}) + ".e30.eA", "The key ID is not text"),
        (signed(crit=["x"], x=1), "an extension of JWS that is not known"),
        ("garbage", "3 sections"),
        ("a.b", "3 sections"),
        ("a.b.c.d", "3 sections"),
        ("a..c", "3 sections"),
        ("a~.b.c", "malformed Base64"),
        ("YWJj.b.c", "malformed JSON"),
    ],
)
def test_tokens_that_are_not_taken(value: str, said: str) -> None:
    with pytest.raises(IllegalToken, match=said):
        verified_claims(value, KEYS)


def test_a_payload_that_was_changed() -> None:
    head, _, signature = signed().split(".")
    with pytest.raises(IllegalToken, match="The signature does not hold"):
        verified_claims(f"{head}.{section(claims(sub='root'))}.{signature}", KEYS)


@pytest.mark.parametrize(
    "more",
    [{"use": "enc"}, {"alg": "RS512"}, {"key_ops": ["encrypt"]}, {"key_ops": 5}, {"kid": "x"}],
)
def test_keys_that_are_for_something_else(more: dict[str, Any]) -> None:
    with pytest.raises(UnknownKey):
        verified_claims(signed(), [{**public_jwk(RSA, "rsa"), **more}])


def test_keys_that_cannot_be_used() -> None:
    with pytest.raises(IllegalToken, match="The key of the JWKS cannot be used"):
        verified_claims(signed(), [{"kty": "RSA", "kid": "rsa"}])
    short = rsa_key(1024)
    with pytest.raises(IllegalToken, match="has 1024 bits, not 2048"):
        verified_claims(signed(), [public_jwk(short, "rsa")])


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"keys":{}}', b"<html>"])
def test_what_is_no_key_set(data: bytes) -> None:
    with pytest.raises(ValueError, match="it is not"):
        parse_jwks(data)
    assert parse_jwks(b'{"keys":[5,{"kty":"RSA"}]}') == ({"kty": "RSA"},)


def test_an_unknown_key_id_is_told_of() -> None:
    asked: list[str] = []
    validator = SignedValidator(SignedRules(), lambda: KEYS, asked.append)
    assert validator.validate(signed(), NOW_MS).principal == "alice"
    with pytest.raises(UnknownKey):
        validator.validate(signed(kid="new"), NOW_MS)
    with pytest.raises(IllegalToken):
        validator.validate(signed(OTHER), NOW_MS)
    assert asked == ["new"]


WITH_AUDIENCE = SignedRules(audiences=("a", "b"), issuer="i")


@pytest.mark.parametrize(
    ("rules", "more"),
    [
        (SignedRules(), {}),
        (SignedRules(), {"iss": "anybody", "nbf": NOW_S}),
        (WITH_AUDIENCE, {"aud": "b", "iss": "i"}),
        (WITH_AUDIENCE, {"aud": ["c", "a"], "iss": "i"}),
        (SignedRules(), {"exp": NOW_S - 29}),
        (SignedRules(), {"nbf": NOW_S + 30}),
        (SignedRules(), {"iat": NOW_S + 50}),
        (SignedRules(skew_s=0), {"exp": NOW_S + 1, "nbf": NOW_S}),
        (SignedRules(), {"scope": 5}),
        (SignedRules(), {"scope": ["a", "b"]}),
    ],
)
def test_claims_that_are_good(rules: SignedRules, more: dict[str, Any]) -> None:
    if more.get("exp", NOW_S) < NOW_S:
        more["iat"] = NOW_S - 60
    assert rules.token("v", claims(**more), NOW_MS).principal == "alice"


@pytest.mark.parametrize(
    ("rules", "more", "said"),
    [
        (SignedRules(), {"aud": "a"}, "It is for audience a; expected is none"),
        (WITH_AUDIENCE, {"iss": "i"}, "It names no audience; expected is a or b"),
        (WITH_AUDIENCE, {"aud": "c", "iss": "i"}, "It is for audience c; expected is a or b"),
        (WITH_AUDIENCE, {"aud": 5, "iss": "i"}, "The 'aud' claim was not text"),
        (WITH_AUDIENCE, {"aud": "a"}, "Its issuer is None; expected is i"),
        (WITH_AUDIENCE, {"aud": "a", "iss": "j"}, "Its issuer is j; expected is i"),
        (SignedRules(), {"exp": NOW_S - 30, "iat": NOW_S - 60}, "It expired 30 s ago"),
        (SignedRules(skew_s=0), {"exp": NOW_S, "iat": NOW_S - 60}, "It expired 0 s ago"),
        (SignedRules(), {"nbf": NOW_S + 31}, "It is not valid before 31 s from now"),
        (SignedRules(), {"exp": None}, "It must say when"),
        (SignedRules(), {"iat": None}, "It must say when"),
        (SignedRules(), {"exp": "x"}, "The 'exp' claim was not a number"),
        (SignedRules(), {"iat": -1}, "must not be negative"),
        (SignedRules(), {"iat": NOW_S + 61}, "It expires before it begins"),
        (SignedRules(), {"sub": None}, "The 'sub' claim must be text"),
        (SignedRules(), {"sub": " "}, "The 'sub' claim must be text"),
        (SignedRules(sub_claim="name"), {}, "The 'name' claim must be text"),
        (SignedRules(), {"scope": ""}, "what is no scope"),
        (SignedRules(), {"scope": ["a", "a"]}, "what is no scope"),
        (SignedRules(), {"scope": ["a", 5]}, "what is no scope"),
    ],
)
def test_claims_that_are_not(rules: SignedRules, more: dict[str, Any], said: str) -> None:
    with pytest.raises(IllegalToken, match=said):
        rules.token("v", claims(**more), NOW_MS)


def test_what_a_token_says() -> None:
    found = SignedRules(sub_claim="name", scope_claim="roles").token(
        "v", claims(name=" bob ", roles="use more", exp=NOW_S + 60.9), NOW_MS
    )
    assert (found.principal, found.scope) == ("bob", {"use more"})
    assert (found.starts_ms, found.expires_ms) == (NOW_MS, NOW_MS + 60_000)


def test_spaces_that_java_does_not_trim_belong_to_the_name() -> None:
    """Two users of an identity provider must not become one."""
    for name in ("alice\u3000", "\xa0alice", "\x85alice", "\u2003"):
        found = SignedRules().token("v", claims(sub=f"\0 {name}\t", scope=name), NOW_MS)
        assert (found.principal, found.scope) == (name, {name})


def test_the_missing_packages_that_check_signatures_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_library("k")
    monkeypatch.setattr(oauth_jwks, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"k needs .*pip install PyJWT cryptography$"):
        check_library("k")


@pytest.mark.parametrize("far", [2**63, 2**64 - 1, 1e19, 1e307])
def test_times_beyond_all_dates(far: float) -> None:
    token = SignedRules().token("v", claims(exp=far), NOW_MS)
    assert token.expires_ms == 253_402_300_799_000
    with pytest.raises(IllegalToken, match="not valid before"):
        SignedRules().token("v", claims(exp=far, nbf=far), NOW_MS)
    for name in ("exp", "iat"):
        with pytest.raises(IllegalToken, match="must not be negative"):
            SignedRules().token("v", claims(**{name: -far}), NOW_MS)
