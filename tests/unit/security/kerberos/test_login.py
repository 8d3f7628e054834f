"""JAAS lines of Krb5LoginModule: their options, and one clear error for each that is missing."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties, of_listener
from kafkapy.security.kerberos.login import MODULE, KerberosLogin, kerberos_login, keytab_login

KEYTAB = 'useKeyTab=true storeKey=true keyTab="/k" principal="kafka/h@R"'
JAAS = "sasl.jaas.config"


def given(options: str, **more: str) -> PrefixedProperties:
    """Properties with this JAAS line; `_` stands for a dot."""
    others = {name.replace("_", "."): value for name, value in more.items()}
    return PrefixedProperties(
        {JAAS: f"{MODULE} required {options};", "sasl.kerberos.service.name": "kafka", **others}
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (KEYTAB, KerberosLogin(JAAS, "kafka", "kafka/h@R", "/k")),
        ('useKeyTab=TRUE principal="a@R"', KerberosLogin(JAAS, "kafka", "a@R", "")),
        ("useTicketCache=true", KerberosLogin(JAAS, "kafka", "", None, "")),
        (
            'useTicketCache=true ticketCache="/c" principal="a@R" useKeyTab=false keyTab="/k"',
            KerberosLogin(JAAS, "kafka", "a@R", None, "/c"),
        ),
        (f"{KEYTAB} useTicketCache=true", KerberosLogin(JAAS, "kafka", "kafka/h@R", "/k", "")),
        (f'{KEYTAB} serviceName="kafka"', KerberosLogin(JAAS, "kafka", "kafka/h@R", "/k")),
    ],
)
def test_what_a_line_says(options: str, expected: KerberosLogin) -> None:
    assert kerberos_login(given(options)) == expected


def test_the_service_may_stand_in_the_line_alone() -> None:
    properties = given(f"{KEYTAB} serviceName=other", sasl_kerberos_service_name="")
    assert kerberos_login(properties).service == "other"


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        (PrefixedProperties({}), f"{JAAS} must be a line of Krb5LoginModule for GSSAPI"),
        (
            of_listener({}, "X").with_prefixes("listener.name.x.gssapi."),
            f"listener.name.x.gssapi.{JAAS} must be a line of Krb5LoginModule",
        ),
        (
            PrefixedProperties({JAAS: 'x.PlainLoginModule required username="a" password="b";'}),
            f"{JAAS} must be a line of Krb5LoginModule",
        ),
        (given(""), f"{JAAS} must have useKeyTab=true keyTab="),
        (given("useKeyTab=true keyTab=/k"), f"{JAAS} must name the principal whose key"),
        (given("useTicketCache=true useKeyTab=true"), f"{JAAS} must name the principal whose"),
        (given(KEYTAB, sasl_kerberos_service_name=""), "sasl.kerberos.service.name must be the"),
        (
            given(f"{KEYTAB} serviceName=other"),
            f"{JAAS} has serviceName=other, and sasl.kerberos.service.name is kafka",
        ),
    ],
)
def test_what_a_line_lacks(properties: PrefixedProperties, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        kerberos_login(properties)
    assert str(refused.value).startswith(said)


def test_who_has_others_log_in_needs_a_key() -> None:
    assert keytab_login(given(KEYTAB)).keytab == "/k"
    with pytest.raises(ConfigError, match="must have useKeyTab=true, and the principal"):
        keytab_login(given("useTicketCache=true"))
