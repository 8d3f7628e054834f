"""Kerberos at a broker: calls to the library, and errors when they fail.

The library is scripted; tests/security/test_gssapi.py uses a real realm.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties, of_listener
from kafkapy.security.kerberos import gss_library
from kafkapy.security.kerberos.gss_context import CHOICE, GssContext, GssFailed
from kafkapy.security.kerberos.login import MODULE, KerberosLogin
from kafkapy.security.sasl.server import RefusedSilently
from kafkapy.server.security.kerberos import OwnLogin, server_factory
from tests.harness.security.scripted_gss import ScriptedContext

KEY = "listener.name.x.gssapi.sasl.jaas.config"
KEYTAB = 'useKeyTab=true keyTab="/k" principal="kafka/h@R"'


class Library:
    """The library's two sides. `failure` is what it says."""

    failure = ""

    def __init__(self, login: KerberosLogin) -> None:
        self.login = login
        if self.failure and type(self) is Acceptor:
            raise GssFailed(self.failure)


class Acceptor(Library):
    def begin(self) -> GssContext:
        return ScriptedContext((b"AP-REQ", b"AP-REP"), initiator="Alice@R")


class Initiator(Library):
    def begin(self, host: str) -> GssContext:
        return ScriptedContext((b"", f"AP-REQ {self.login.service}/{host}".encode()), (b"", b""))

    def check(self) -> None:
        if self.failure:
            raise GssFailed(self.failure)


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> type[Library]:
    monkeypatch.setattr(Library, "failure", "")
    for name, value in {
        "Acceptor": Acceptor,
        "Initiator": Initiator,
        "check_library": lambda key: None,
        "default_realm": lambda: "R",
    }.items():
        monkeypatch.setattr(gss_library, name, value)
    return Library


def given(options: str = KEYTAB, **more: str) -> PrefixedProperties:
    """A listener's properties; `_` stands for a dot."""
    others = {name.replace("_", "."): value for name, value in more.items()}
    properties = {
        KEY: f"{MODULE} required {options};",
        "sasl.kerberos.service.name": "kafka",
        **others,
    }
    return of_listener(properties, "X").with_prefixes("listener.name.x.gssapi.")


def login(begin: Any) -> str | None:
    server = begin()
    for token in (b"AP-REQ", b"", b"wrapped " + CHOICE):
        server.evaluate(token)
    name: str | None = server.username
    return name


def test_users_are_named_by_the_rules_of_the_listener() -> None:
    rules = "sasl_kerberos_principal_to_local_rules"
    assert login(server_factory(given())) == "Alice"
    begin = server_factory(
        given(**{rules: "RULE:[2:$1],RULE:[1:$1]/L", f"listener_name_y_{rules}": ""})
    )
    assert login(begin) == "alice"
    own = server_factory(given(**{rules: "DEFAULT", f"listener_name_x_{rules}": "RULE:[1:$1]/U"}))
    assert login(own) == "ALICE"
    with pytest.raises(RefusedSilently, match="No rules apply to Alice@R"):
        login(server_factory(given(**{rules: "RULE:[2:$1]"})))


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        (given("useTicketCache=true"), f"{KEY} must have useKeyTab=true, and the principal"),
        (
            given(sasl_kerberos_principal_to_local_rules="x"),
            "sasl.kerberos.principal.to.local.rules: x is not a rule",
        ),
    ],
)
def test_what_cannot_be_served(properties: PrefixedProperties, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        server_factory(properties)
    assert str(refused.value).startswith(said)


def test_a_key_that_is_not_in_the_keytab(library: type[Library]) -> None:
    library.failure = "No key of kafka/h@R in keytab /k: no such file"
    with pytest.raises(ConfigError) as refused:
        server_factory(given())
    assert str(refused.value) == f"{KEY}: No key of kafka/h@R in keytab /k: no such file"


def test_its_own_login() -> None:
    own = OwnLogin(given("useTicketCache=true"))
    own.check()
    assert next(own.begin("b2")) == b"AP-REQ kafka/b2"


def test_its_own_login_that_fails(library: type[Library]) -> None:
    library.failure = "No Kerberos login by keytab /k: Client not found"
    with pytest.raises(ConfigError) as refused:
        OwnLogin(given()).check()
    assert str(refused.value) == f"{KEY}: No Kerberos login by keytab /k: Client not found"
    talk = OwnLogin(given()).begin("b2")
    next(talk)
    with pytest.raises(ApiError, match="is no token"):
        talk.send(b"garbage")
