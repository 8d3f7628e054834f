"""Unsecured tokens: which are taken, which are not, and what the client hears."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.oauth.tokens import (
    IllegalToken,
    UnsecuredRules,
    check_extensions,
    encode_unsecured,
    section_of,
    unsecured_rules,
)

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
UNSIGNED = section_of({"alg": "none"})


def claims(**more: Any) -> dict[str, Any]:
    """Good ones; a claim that is None is left out."""
    whole = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60, **more}
    return {name: value for name, value in whole.items() if value is not None}


def test_a_good_token() -> None:
    value = encode_unsecured(claims(scope=[" a ", "b", "", "\t\xa0"]))
    token = UnsecuredRules(required_scope=("b",)).validate(value, NOW_MS)
    assert token.value == value
    assert token.principal == "alice"
    assert (token.starts_ms, token.expires_ms) == (NOW_MS, NOW_MS + 60_000)
    assert token.scope == {"a", "b", "\xa0"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "must have 3 sections"),
        ("garbage", "must have 3 sections"),
        (f"{UNSIGNED}.{section_of(claims())}", "must have 3 sections"),
        (f"{UNSIGNED}..", "must have 3 sections"),
        (f"{UNSIGNED}.{section_of(claims())}.a.b", "must have 3 sections"),
        (f"{UNSIGNED}.{section_of(claims())}.sign", "must not contain a digital signature"),
        (f"{section_of({'alg': 'RS256'})}.{section_of(claims())}.", "must have 'none'"),
        (f"{section_of({'typ': 'JWT'})}.{section_of(claims())}.", "must have 'none'"),
        (f"{UNSIGNED}.a~b.", "malformed Base64"),
        (f"{UNSIGNED}.A.", "malformed Base64"),
        (f"{UNSIGNED}.YWJj.", "malformed JSON"),
        (f"{UNSIGNED}.W10.", "not an object"),
    ],
)
def test_what_is_no_unsecured_token(value: str, said: str) -> None:
    with pytest.raises(IllegalToken, match=said) as illegal:
        UnsecuredRules().validate(value, NOW_MS)
    assert (illegal.value.status, illegal.value.scope) == ("invalid_token", None)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sub": None}, "The 'sub' claim must be text"),
        ({"sub": " "}, "The 'sub' claim must be text"),
        ({"sub": 5}, "The 'sub' claim must be text"),
        ({"exp": None}, "No expiration time"),
        ({"exp": "soon"}, "The 'exp' claim was not a number"),
        ({"exp": True}, "The 'exp' claim was not a number"),
        ({"iat": "now"}, "The 'iat' claim was not a number"),
        ({"exp": NOW_S}, "It expired 0 ms ago"),
        ({"exp": NOW_S - 1, "iat": None}, "It expired 1000 ms ago"),
        ({"iat": NOW_S + 1, "exp": NOW_S + 9}, "It was issued 1000 ms from now"),
        ({"scope": 5}, "The 'scope' claim was not text"),
        ({"scope": ["a", 5]}, "The 'scope' claim was not text"),
    ],
)
def test_claims_that_are_wrong(more: dict[str, Any], said: str) -> None:
    with pytest.raises(IllegalToken, match=said):
        UnsecuredRules().validate(encode_unsecured(claims(**more)), NOW_MS)


@pytest.mark.parametrize(
    ("more", "skew_ms", "taken"),
    [
        ({"exp": NOW_S, "iat": None}, 1, True),
        ({"exp": NOW_S - 1, "iat": None}, 1000, False),
        ({"exp": NOW_S - 1, "iat": None}, 1001, True),
        ({"iat": NOW_S + 1}, 999, False),
        ({"iat": NOW_S + 1}, 1000, True),
        ({"iat": NOW_S - 5, "exp": NOW_S - 5}, 9000, False),
    ],
)
def test_clocks_may_differ(more: dict[str, Any], skew_ms: int, taken: bool) -> None:
    rules, value = UnsecuredRules(skew_ms=skew_ms), encode_unsecured(claims(**more))
    if taken:
        assert rules.validate(value, NOW_MS).principal == "alice"
    else:
        with pytest.raises(IllegalToken):
            rules.validate(value, NOW_MS)


@pytest.mark.parametrize("scope", [None, "", "a", "a b", ["a"]])
def test_a_scope_that_is_required(scope: Any) -> None:
    rules = UnsecuredRules(required_scope=("a", "b"))
    with pytest.raises(IllegalToken) as illegal:
        rules.validate(encode_unsecured(claims(scope=scope)), NOW_MS)
    assert (illegal.value.status, illegal.value.scope) == ("insufficient_scope", "[a, b]")


def test_the_rules_of_a_line() -> None:
    options = {
        "unsecuredValidatorPrincipalClaimName": "name",
        "unsecuredValidatorScopeClaimName": "roles",
        "unsecuredValidatorRequiredScope": "a b a",
        "unsecuredValidatorAllowableClockSkewMs": "3000",
    }
    rules = unsecured_rules(options, "k")
    assert rules == UnsecuredRules("name", "roles", ("a", "b"), 3000)
    value = encode_unsecured({"name": "bob", "roles": ["a", "b"], "exp": NOW_S - 1})
    assert rules.validate(value, NOW_MS).principal == "bob"
    assert unsecured_rules({}, "k") == UnsecuredRules()


@pytest.mark.parametrize(
    ("name", "value"), [("AllowableClockSkewMs", "-1"), ("RequiredScope", 'a"b')]
)
def test_rules_that_are_wrong(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"k: unsecuredValidator{name}"):
        unsecured_rules({f"unsecuredValidator{name}": value}, "k")


@pytest.mark.parametrize("pair", [("auth", "x"), ("a1", "x"), ("a", ""), ("a", "\x01")])
def test_extensions_that_cannot_be_sent(pair: tuple[str, str]) -> None:
    check_extensions([("traceId", "1 2")])
    with pytest.raises(ConfigError, match=f"extension .*{pair[0]}"):
        check_extensions([pair])


FAR = (2**53, 2**62, 2**63, 2**64 - 1, 1e19, 1e306, 1.7e308)
YEAR_9999_MS = 253_402_300_799_000


@pytest.mark.parametrize("exp", FAR)
def test_an_end_beyond_all_dates_is_the_last_date(exp: float) -> None:
    token = UnsecuredRules().validate(encode_unsecured(claims(exp=exp)), NOW_MS)
    assert token.expires_ms == YEAR_9999_MS


@pytest.mark.parametrize("name", ["exp", "iat"])
@pytest.mark.parametrize(
    "text", ["-1e307", "-9223372036854775808", "1e309", "-1e309", '"1"', "true", "[1]", "{}", "NaN"]
)
def test_a_time_that_cannot_be_is_refused(name: str, text: str) -> None:
    times = {"iat": str(NOW_S), "exp": str(NOW_S + 60), name: text}
    content = f'{{"sub":"alice","iat":{times["iat"]},"exp":{times["exp"]}}}'.encode()
    value = f"{UNSIGNED}.{base64.urlsafe_b64encode(content).rstrip(b'=').decode()}."
    rules = UnsecuredRules()
    if name == "iat" and text.startswith("-") and text != "-1e309":
        assert rules.validate(value, NOW_MS).principal == "alice"  # issued long ago
        return
    with pytest.raises(IllegalToken):
        rules.validate(value, NOW_MS)


@pytest.mark.parametrize("iat", FAR)
def test_an_issue_beyond_all_dates_is_not_yet(iat: float) -> None:
    with pytest.raises(IllegalToken, match="It was issued"):
        UnsecuredRules().validate(encode_unsecured(claims(iat=iat)), NOW_MS)
