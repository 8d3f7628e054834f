"""JAAS lines of login modules: users, credentials and token logins."""

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.sasl.jaas import Credentials, jaas_credentials, jaas_options, jaas_users
from kafkapy.security.sasl.jaas_file import parse

LINE = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required\n"
    '  username="admin" password=s3 user_admin="s3" user_bob="a;b=\\"c\\"" "user_d e"="f";'
)


def test_users_and_the_login() -> None:
    assert jaas_users(LINE) == {"admin": "s3", "bob": 'a;b="c"', "d e": "f"}
    assert jaas_credentials(LINE) == Credentials("admin", "s3")
    assert jaas_options("ScramLoginModule required;") == {}


def test_a_line_without_a_user_names_its_key() -> None:
    with pytest.raises(ConfigError, match=r"^listener\.x must name a user"):
        jaas_credentials('a required username="u";', "listener.x")


@pytest.mark.parametrize(("said", "is_token"), [("true", True), ("TRUE", True), ("false", False)])
def test_a_login_by_a_delegation_token(said: str, is_token: bool) -> None:
    line = f'x.ScramLoginModule required username="id" password="hmac" tokenauth="{said}";'
    assert jaas_credentials(line) == Credentials("id", "hmac", is_token)


ESCAPES = [
    ("a\\tb\\nc\\r\\f\\v\\a\\b", "a\tb\nc\r\f\v\a\b"),
    ("a\\101b\\7\\18\\400", "aAb\x07\x018 0"),
    ('a\\\\n\\"c\\q\\.', 'a\\n"cq.'),
]


@pytest.mark.parametrize(("quoted", "text"), ESCAPES)
def test_escapes_are_those_of_java(quoted: str, text: str) -> None:
    assert jaas_options(f'X required password="{quoted}";') == {"password": text}
    [module] = parse(f'S {{ X required password="{quoted}"; }};', {})["S"]
    assert module.options == {"password": text}
    assert jaas_options(module.line()) == {"password": text}


def test_both_kinds_of_quotes() -> None:
    line = """x required username='al ice' 'password'='s"e\\'c;' user_a="it's" user_b="don't";"""
    assert jaas_credentials(line) == Credentials("al ice", "s\"e'c;")
    assert jaas_users(line) == {"a": "it's", "b": "don't"}
    assert jaas_options("x required a=it's b='c;") == {"a": "it's", "b": "'c"}
