"""SCRAM credentials as a broker stores them, mechanisms, and escaped names."""

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.sasl.scram import (
    MECHANISMS,
    ScramCredential,
    ScramMechanism,
    escape,
    unescape,
)

SHA_256 = ScramMechanism.SCRAM_SHA_256


def test_a_credential_reads_back_what_it_says() -> None:
    credential = ScramCredential.of(
        SHA_256, b"salt", SHA_256.salted_password("pencil", b"salt", 4096), 4096
    )
    assert ScramCredential.parse(credential.text()) == credential
    assert credential.text().startswith("salt=c2FsdA==,stored_key=")
    assert credential.text().endswith(",iterations=4096")


def test_keys_are_those_of_rfc_7677() -> None:
    salt = bytes.fromhex("5b6d99689d12358eec a04b141236fa81")
    credential = ScramCredential.of(
        SHA_256, salt, SHA_256.salted_password("pencil", salt, 4096), 4096
    )
    assert "stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=" in credential.text()
    assert "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=" in credential.text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=x",
        "salt=!,stored_key=YQ==,server_key=YQ==,iterations=4096",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=4096,more=1",
    ],
)
def test_what_is_no_credential_is_not_shown(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ScramCredential.parse(text)
    assert "YQ" not in str(caught.value)


def test_names_survive_a_message() -> None:
    for name in ("alice", "a=b,c", "=2C", "=3D,"):
        assert unescape(escape(name)) == name
    with pytest.raises(ValueError, match="not an escaped"):
        unescape("a=b")


def test_mechanisms_by_their_config() -> None:
    assert {name: (int(m), m.digest) for name, m in MECHANISMS.items()} == {
        "SCRAM-SHA-256": (1, "SHA256"),
        "SCRAM-SHA-512": (2, "SHA512"),
    }
