"""JAAS files are read as Java reads them, and what they say of a login."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_environment import LOGIN_CONFIG
from kafkapy.common.prefixed_properties import of_listener
from kafkapy.security.sasl.jaas import jaas_credentials, jaas_options, jaas_users
from kafkapy.security.sasl.jaas_file import (
    JaasFile,
    login_line,
    of_properties,
    parse,
    read,
    with_client_login,
)

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
TEXT = f"""
/* Of brokers; not ${{expanded}}. */
KafkaServer {{
   {PLAIN} required   // with comments
   username="admin"
   password="a\\"b;c}}"
   user_alice="//no comment"
   "user_d e"=word;
   {SCRAM} Sufficient username="scram" password="s";
}};
"sasl_ssl.KafkaServer" {{ {PLAIN} required username="own" password="${{secret}}"; }};
Client {{
   org.apache.zookeeper.server.auth.DigestLoginModule required username=u password=p;
}};
"""
SECTIONS = parse(TEXT, {"secret": "s3"})
FILE = JaasFile("/jaas.conf", SECTIONS)


def test_sections_modules_and_options() -> None:
    assert list(SECTIONS) == ["KafkaServer", "sasl_ssl.KafkaServer", "Client"]
    plain, scram = SECTIONS["KafkaServer"]
    assert (plain.name, plain.flag, scram.flag) == (PLAIN, "required", "sufficient")
    assert plain.options == {
        "username": "admin",
        "password": 'a"b;c}',
        "user_alice": "//no comment",
        "user_d e": "word",
    }
    assert SECTIONS["sasl_ssl.KafkaServer"][0].options["password"] == "s3"


def test_a_module_as_a_line_says_the_same() -> None:
    plain, _ = SECTIONS["KafkaServer"]
    assert jaas_options(plain.line()) == plain.options


def test_a_mechanism_has_its_own_module() -> None:
    modules = SECTIONS["KafkaServer"]
    line = login_line(modules, "PLAIN")
    assert jaas_users(line) == {"alice": "//no comment", "d e": "word"}
    assert jaas_credentials(line).username == "admin"
    assert jaas_credentials(login_line(modules, "SCRAM-SHA-512")).username == "scram"


def test_the_user_may_be_that_of_another_module() -> None:
    """All modules of a section log in, so Java finds the user of any of them."""
    text = f'S {{ {PLAIN} required user_a="x"; {SCRAM} required username="u" password="p"; }};'
    line = login_line(parse(text, {})["S"], "PLAIN")
    assert jaas_users(line) == {"a": "x"}
    assert jaas_credentials(line) == ("u", "p", False)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("KafkaClient", "line 1: expected '{', found the end of the file"),
        ("A { m required; }", "line 1: expected ';', found the end of the file"),
        ("A { m required; }; A { m required; };", "the section A stands twice"),
        ("A {}; A { m required; };", "the section A stands twice"),
        ("A {\n m needed; };", "line 2: needed is not one of required, requisite, sufficient,"),
        ("A { m required a b; };", "line 1: expected '=', found word"),
        ("A { m required\n a=; };", "line 2: expected the value of an option, found ';'"),
        ('A { m required a="b; };', "line 1: a string or a comment does not end"),
        ('A { m required a="${b}"; };', "line 1: the system property b is not set"),
        ("= {", "line 1: expected the name of a section, found '='"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text, {})
    assert str(refused.value).startswith(told)


def test_a_broker_starts_though_a_section_is_empty() -> None:
    """Java returns null for a section without login modules, as for one that is not there."""
    assert list(parse(f"KafkaServer {{ {PLAIN} required; }};\nClient {{}};", {})) == ["KafkaServer"]


def test_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    with pytest.raises(ConfigError, match=r"login\.config=.*/jaas\.conf cannot be read: No such"):
        read(str(file))
    file.write_text("A {")
    with pytest.raises(ConfigError, match=r"^/.*/jaas\.conf: line 1: expected"):
        read(str(file))
    file.write_text(f"KafkaClient {{ {PLAIN} required; }};")
    for form in ("{}", "={}", "file:{}", "file://{}", "=file:{}"):
        assert list(read(form.format(file)).sections) == ["KafkaClient"]
    assert of_properties({}) is None
    assert of_properties({LOGIN_CONFIG: str(file)}) == read(str(file))


def test_the_line_of_a_mechanism_wins_and_a_listener_has_a_section_of_its_own() -> None:
    def found(listener: str, **given: str) -> tuple[str, str]:
        properties = {f"{key}.sasl.jaas.config": line for key, line in given.items()}
        prefix = f"listener.name.{listener.lower()}.plain."
        asked = of_listener(properties, listener).with_prefixes(prefix)
        seen = FILE.at_listener(asked, listener, "PLAIN")
        return jaas_options(seen.text("sasl.jaas.config"))["username"], seen.key("sasl.jaas.config")

    assert found("SASL_SSL") == ("own", "/jaas.conf, sasl_ssl.KafkaServer: sasl.jaas.config")
    assert found("OTHER") == ("admin", "/jaas.conf, KafkaServer: sasl.jaas.config")
    key, line = "listener.name.other.plain", 'm required username="line";'
    assert found("OTHER", **{key: line})[0] == "line"
    # Kafka takes no other key at all.
    assert found("OTHER", **{"listener.name.other": line})[0] == "admin"


def test_a_client_has_its_section_unless_its_properties_say_more(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(f'KafkaClient {{ {SCRAM} required username="u" password="p"; }};')
    properties = {LOGIN_CONFIG: str(file)}
    line = with_client_login(properties, "SCRAM-SHA-256")["sasl.jaas.config"]
    assert jaas_credentials(line) == ("u", "p", False)
    given = {**properties, "sasl.jaas.config": "mine"}
    assert with_client_login(given, "SCRAM-SHA-256") == given
    file.write_text(f"Other {{ {SCRAM} required; }};")
    with pytest.raises(ConfigError) as refused:
        with_client_login(properties, "SCRAM-SHA-256")
    assert str(refused.value) == (
        "Could not find a 'KafkaClient' entry in the JAAS configuration. System property"
        f" 'java.security.auth.login.config' is {file}"
    )
