"""Which user a principal is, by rules of `auth_to_local`: the answers are those of Kafka 3.9.1."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.kerberos.names import LocalNames, NoLocalName, Principal, parse_principal

HADOOP = "RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g|RULE:[2:$1](App\\..*)s/App\\.(.*)/$1/g|DEFAULT"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alice@R", Principal("R", ("alice",))),
        ("kafka/b1.example.com@R.COM", Principal("R.COM", ("kafka", "b1.example.com"))),
        ("/@", Principal("", ("", ""))),
        ("@R", Principal("R", ("",))),
    ],
)
def test_principals(text: str, expected: Principal) -> None:
    assert parse_principal(text) == expected


@pytest.mark.parametrize("text", ["", "alice", "a/b/c@R", "a@b@R", "a@R/b", "a\\/b@R", "a\\@b@R"])
def test_what_is_no_principal_with_a_local_name(text: str) -> None:
    with pytest.raises(NoLocalName, match="Malformed Kerberos name"):
        parse_principal(text)


@pytest.mark.parametrize(
    ("rules", "principal", "expected"),
    [
        ("DEFAULT", "alice@R", "alice"),
        ("DEFAULT", "kafka/b1@R", "kafka"),
        (HADOOP, "App.service-name/example.com@R", "service-name"),
        (HADOOP, "App.service-name@R", "service-name"),
        (HADOOP, "user@R", "user"),
        ("RULE:[1:$1]", "Alice@OTHER", "Alice"),
        ("RULE:[1:$1]/L", "Alice@R", "alice"),
        ("RULE:[1:$1]/U", "Alice@R", "ALICE"),
        ("RULE:[1:$1]L", "Alice@R", "alice"),
        ("RULE:[2:$1]|RULE:[1:x$1]", "a@R", "xa"),
        ("RULE:[2:$2-$1-$0]", "kafka/b1@R", "b1-kafka-R"),
        ("RULE:[2:]", "kafka/b1@R", ""),
        ("RULE:[1:$1@$0](.*@R)s/@.*//", "alice@R", "alice"),
        ("RULE:[1:$1](a)|RULE:[1:b]", "ab@R", "b"),
        ("RULE:[1:$1](a.*)s/a/b/", "aaa@R", "baa"),
        ("RULE:[1:$1](a.*)s/a/b/g", "aaa@R", "bbb"),
        ("RULE:[1:$1](a.*)s/a/b/g/U", "aaa@R", "BBB"),
        ("RULE:[1:$1]s/x/y/", "abc@R", "abc"),
        ("RULE:[1:$1]s/.*/x/g", "abc@R", "xx"),
        ("RULE:[1:$1]s/(b)(z)?/<$1$2>/", "abc@R", "a<b>c"),
        ("RULE:[1:$1]s/(b)/$12/", "abc@R", "ab2c"),
        ("RULE:[1:$1]s/(?<n>b)/\\$1${n}/", "abc@R", "a$1bc"),
        ("RULE:[1:$1]()", "@R", ""),
    ],
)
def test_users(rules: str, principal: str, expected: str) -> None:
    assert LocalNames(rules.split("|"), "R").name_of(principal) == expected


@pytest.mark.parametrize(
    ("rules", "principal", "said"),
    [
        ("DEFAULT", "alice@OTHER", "No rules apply to alice@OTHER"),
        ("RULE:[2:$1]", "alice@R", "No rules apply to alice@R"),
        ("RULE:[1:$1](b)", "alice@R", "No rules apply to alice@R"),
        ("RULE:[1:$1@$0]|DEFAULT", "a@R", "Non-simple name a@R after auth_to_local rule RULE:"),
        ("RULE:[2:$1/$2]", "a/b@R", "Non-simple name a/b after auth_to_local rule"),
        ("DEFAULT", "a/b/c@R", "Malformed Kerberos name: a/b/c@R"),
    ],
)
def test_principals_that_are_no_users(rules: str, principal: str, said: str) -> None:
    with pytest.raises(NoLocalName) as refused:
        LocalNames(rules.split("|"), "R").name_of(principal)
    assert str(refused.value).startswith(said)


def test_no_rules_and_no_realm_make_no_users() -> None:
    for names in (LocalNames([], "R"), LocalNames(["DEFAULT"], "")):
        with pytest.raises(NoLocalName, match="No rules apply"):
            names.name_of("alice@R")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("default", "key: default is not a rule: DEFAULT or RULE:"),
        ("RULE:[:$1]", "is not a rule"),
        ("RULE:[1:$1](a)b", "is not a rule"),
        ("RULE:[1:$1]s/a/b", "is not a rule"),
        ("RULE:[1:$1]/X", "is not a rule"),
        ("RULE:[1:$1](*)", r"key: \* is not a pattern"),
        ("RULE:[1:$1]s/[/b/", r"key: \[ is not a pattern"),
        ("RULE:[1:$1](a{99999999999})", r"key: a\{99999999999\} is not a pattern"),
        ("RULE:[1:$2]", r"key: RULE:\[1:\$2\]: \$2 is none of \$0 to \$1"),
        ("RULE:[1:$]", r"\$ is none of \$0 to \$1"),
        ("RULE:[1:$1]s/a/$1/", r"there is no group \$1"),
        ("RULE:[1:$1]s/a/${n}/", r"there is no group \$\{n\}"),
        ("RULE:[1:$1]s/a/$x/", r"goes on wrongly at \$x"),
        ("RULE:[1:$1]s/a/b\\/", r"goes on wrongly at \\"),
    ],
)
def test_what_is_no_rule(rule: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LocalNames([rule], "R", "key")
