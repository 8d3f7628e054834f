"""Settings from a configuration file, and keys that are refused."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.zk.service.settings import (
    WORDS,
    ServiceSettings,
    ignored_keys,
    settings_from,
)


def test_the_defaults_are_zookeepers() -> None:
    assert settings_from({}) == ServiceSettings(3000, 6000, 60_000, 60, 1048575)


def test_timeouts_follow_the_tick() -> None:
    found = settings_from({"tickTime": "100", "maxClientCnxns": "0", "jute.maxbuffer": "99"})
    assert found == ServiceSettings(100, 200, 2000, 0, 99)
    found = settings_from({"minSessionTimeout": "1", "maxSessionTimeout": "5"})
    assert (found.min_session_timeout_ms, found.max_session_timeout_ms) == (1, 5)


@pytest.mark.parametrize(
    ("key", "text"),
    [("tickTime", "0"), ("tickTime", "x"), ("maxClientCnxns", "-1"), ("jute.maxbuffer", "9" * 20)],
)
def test_a_wrong_value_is_named(key: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {text} for configuration {key}"):
        settings_from({key: text})


def test_limits_that_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match=r"minSessionTimeout \(9\) must not be larger"):
        settings_from({"minSessionTimeout": "9", "maxSessionTimeout": "8"})


@pytest.mark.parametrize(
    "key",
    [
        *("server.1", "requireClientAuthScheme", "enforce.auth.enabled", "ssl.ocsp"),
        *("ssl.crl", "ssl.authProvider", "ssl.clientHostnameVerification"),
    ],
)
def test_what_keeps_clients_out_elsewhere_is_not_ignored(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} has no effect here.*--implementation apache"):
        settings_from({key: "x"})


def test_keys_without_effect() -> None:
    given = {"clientPort": "1", "dataDir": "d", "admin.enableServer": "false", "initLimit": "5"}
    assert ignored_keys(given) == ["admin.enableServer", "initLimit"]


def test_the_file_allows_words_and_srvr_is_always_allowed() -> None:
    """Apache's server too adds srvr to the list, since its own tools use it."""
    assert settings_from({}).words == {"srvr"}
    assert settings_from({"4lw.commands.whitelist": "*"}).words == frozenset(WORDS)
    found = settings_from({"zookeeper.4lw.commands.whitelist": "mntr, ruok,dump"})
    assert found.words == {"srvr", "ruok", "mntr"}


SASL_PROVIDER = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
X509_PROVIDER = "org.apache.zookeeper.server.auth.X509AuthenticationProvider"


def test_schemes_are_those_that_clients_can_prove() -> None:
    assert settings_from({}).schemes == {"world", "digest", "ip"}
    given = {"authProvider.1": SASL_PROVIDER, "authProvider.x509": X509_PROVIDER}
    found = settings_from(given, {"kafka": "secret"}, has_client_certificates=True)
    assert found.schemes == {"world", "digest", "ip", "sasl", "x509"}
    assert ignored_keys(given) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"authProvider.1": SASL_PROVIDER}, "needs a JAAS file with a section Server"),
        ({"authProvider.1": X509_PROVIDER}, "needs secureClientPort"),
        ({"authProvider.1": "com.example.Mine"}, "com.example.Mine cannot be loaded here"),
        ({"sessionRequireClientSASLAuth": "true"}, "needs a JAAS file"),
    ],
)
def test_what_nobody_could_prove(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settings_from(given)


def test_a_login_may_be_required() -> None:
    required = {"sessionRequireClientSASLAuth": "true"}
    assert settings_from(required, {"kafka": "secret"}).requires_login
    assert not settings_from({}, {"kafka": "secret"}).requires_login
