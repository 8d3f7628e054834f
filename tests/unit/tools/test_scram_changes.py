"""Credentials as `configs --alter` writes them."""

import pytest

from kafkapy.admin.scram import NewCredential
from kafkapy.common.errors import ConfigError
from kafkapy.security.sasl.scram import ScramCredential, ScramMechanism
from kafkapy.tools.config_changes import ConfigChange
from kafkapy.tools.scram_changes import (
    mechanisms_of,
    parse_credentials,
    split_change,
    with_salted_credentials,
)

SHA256, SHA512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=x", NewCredential("x", 4096)),
        ("iterations=8192,password=a,b=c", NewCredential("a,b=c", 8192)),
        ("iterations=-1,password=x", NewCredential("x", 4096)),
    ],
)
def test_credentials(text: str, expected: NewCredential) -> None:
    assert parse_credentials({"SCRAM-SHA-256": text}) == {SHA256: expected}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("secret", "Invalid credential property SCRAM-SHA-512=secret"),
        ("password=", "Invalid credential property SCRAM-SHA-512=password=..."),
        ("iterations=x,password=hidden", "property SCRAM-SHA-512=iterations=x,password=..."),
        (f"iterations={2**31},password=x", "property SCRAM-SHA-512=iterations=2147483648,passw"),
        (f"iterations={'9' * 5000},password=x", "Invalid credential property SCRAM-SHA-512=it"),
        ("iterations=10,password=x", "Iterations 10 is less than the minimum 4096 required for SC"),
    ],
)
def test_what_is_no_credential(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_credentials({"SCRAM-SHA-512": text})
    assert said in str(refused.value)


def test_credentials_are_parted_from_quotas() -> None:
    change = ConfigChange({"SCRAM-SHA-256": "p", "request_percentage": "1"}, ["SCRAM-SHA-512", "x"])
    scram, others = split_change(change)
    assert (scram.sets, scram.deletes) == ({"SCRAM-SHA-256": "p"}, ["SCRAM-SHA-512"])
    assert (others.sets, others.deletes) == ({"request_percentage": "1"}, ["x"])
    assert mechanisms_of(["SCRAM-SHA-512"]) == [SHA512]


def test_znodes_have_no_password() -> None:
    change = ConfigChange({"SCRAM-SHA-256": "iterations=8192,password=secret", "q": "1"}, ["d"])
    first, second = with_salted_credentials(change), with_salted_credentials(change)
    assert (first.sets["q"], first.deletes) == ("1", ["d"])
    assert first.sets["SCRAM-SHA-256"] != second.sets["SCRAM-SHA-256"]  # by their salts
    credential = ScramCredential.parse(first.sets["SCRAM-SHA-256"])
    mechanism = ScramMechanism.SCRAM_SHA_256
    salted = mechanism.salted_password("secret", credential.salt, 8192)
    assert credential == ScramCredential.of(mechanism, credential.salt, salted, 8192)
