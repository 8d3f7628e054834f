"""Credentials come and go with the configs of users."""

import logging

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.sasl.scram import ScramCredential
from kafkapy.server.security.scram_credentials import ScramCredentials

TEXT = ScramCredential(b"salt", b"stored", b"server", 4096).text()


def test_they_follow_the_configs() -> None:
    credentials = ScramCredentials()
    find = credentials.lookup_for("SCRAM-SHA-256")
    assert find("a b") is None
    credentials.update("a%20b", {"SCRAM-SHA-256": TEXT, "producer_byte_rate": "1"})
    found = find("a b")
    assert found is not None
    assert found.text() == TEXT
    assert credentials.lookup_for("SCRAM-SHA-512")("a b") is None
    credentials.update("a%20b", {"producer_byte_rate": "1"})
    assert find("a b") is None


@pytest.mark.parametrize("entity", ["<default>", "alice/clients/app"])
def test_only_users_have_them(entity: str) -> None:
    credentials = ScramCredentials()
    credentials.update(entity, {"SCRAM-SHA-256": TEXT})
    assert credentials.lookup_for("SCRAM-SHA-256")("alice") is None


def test_one_that_cannot_be_read_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    credentials = ScramCredentials()
    credentials.update("alice", {"SCRAM-SHA-256": TEXT, "SCRAM-SHA-512": TEXT})
    with pytest.raises(ConfigError, match=r"^SCRAM-SHA-256: a SCRAM credential must have"):
        credentials.update("alice", {"SCRAM-SHA-256": "broken", "SCRAM-SHA-512": TEXT})
    assert credentials.lookup_for("SCRAM-SHA-256")("alice") is None
    assert credentials.lookup_for("SCRAM-SHA-512")("alice") is not None
    assert "stored_key" not in caplog.text
