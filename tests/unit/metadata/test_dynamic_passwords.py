"""Passwords among dynamic configs: encoded where they are stored, plain where they are used."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.metadata.dynamic_passwords import DynamicPasswords
from kafkapy.security.password_encoder import OLD_SECRET, SECRET, PasswordEncoder
from tests.harness.cores.ports import SeededRandom

NAME, OTHER = "listener.name.a.ssl.keystore.password", "listener.name.a.ssl.key.password"
CHANCE = SeededRandom(3).bytes


def passwords(**secrets: str) -> DynamicPasswords:
    names = {"secret": SECRET, "old": OLD_SECRET}
    return DynamicPasswords({names[key]: value for key, value in secrets.items()}, CHANCE)


def test_to_the_store_and_back() -> None:
    configs = {NAME: "changeit", "log.retention.ms": "1"}
    mine = passwords(secret="s")
    assert mine.has_secret
    stored = mine.encoded(configs)
    assert stored["log.retention.ms"] == "1"
    assert PasswordEncoder("s").decode(stored[NAME]) == "changeit"
    assert mine.plain(stored) == configs


def test_without_a_secret_passwords_are_refused_and_others_are_not() -> None:
    none = passwords()
    assert not none.has_secret
    assert none.encoded({"log.retention.ms": "1"}) == {"log.retention.ms": "1"}
    with pytest.raises(ConfigError, match=f"secret not configured: cannot store {NAME}"):
        none.encoded({NAME: "changeit"})


@pytest.mark.parametrize("secret", [{}, {"secret": "other"}])
def test_what_cannot_be_decoded_is_named_and_left_out(
    secret: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    stored = passwords(secret="s").encoded({NAME: "changeit", "log.retention.ms": "1"})
    assert passwords(**secret).plain(stored) == {"log.retention.ms": "1"}
    assert [r.levelname for r in caplog.records] == ["ERROR"]
    assert f"Dynamic password config {NAME} could not be decoded" in caplog.text


def test_the_old_secrets_passwords_get_the_present_one() -> None:
    stored = passwords(secret="s").encoded({NAME: "one", "log.retention.ms": "1"})
    mixed = {**stored, **passwords(secret="t").encoded({OTHER: "two"})}
    changing = passwords(secret="t", old="s")
    anew = changing.reencoded(mixed)
    assert anew is not None
    assert anew[OTHER] == mixed[OTHER]
    expected = {NAME: "one", OTHER: "two", "log.retention.ms": "1"}
    assert passwords(secret="t").plain(anew) == expected
    assert changing.reencoded(anew) is None
    assert passwords(secret="t").reencoded(mixed) is None
    with pytest.raises(ConfigError, match="secret not configured"):
        passwords(old="s").reencoded(stored)
