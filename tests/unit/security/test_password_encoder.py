"""Passwords encoded as Kafka encodes them (tests/security/test_dynamic_passwords.py asks it)."""

from __future__ import annotations

import sys

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.security.password_encoder import (
    CBC,
    GCM,
    OLD_SECRET,
    PasswordEncoder,
    encode_configs,
    is_password,
    password_encoder,
)
from tests.harness.cores.ports import SeededRandom

CHANCE = SeededRandom(7).bytes
# Written by Apache Kafka 3.9.1 under the secret "s3cret".
OF_KAFKA = (
    "initializationVector:ypoR6jCkvEdrNWqpaMAbMg==,keyLength:128,salt:1yQvNcY/4T9k9ZeVOoD5x"
    "yFBTto0gN4uI+PN5v37uukZ5bmGEh+7c+Jvj3BN1oNVeTPoFJRwvS7skIZdIBGUT2nEu8g3pGxp22PCvZEYbEr"
    "t96aTPq7qRXf+9ZDaZ2bVIm+fS1FKrkVSxYTuWbaqGt+/6YjqH92BH4xBrLbc9/7H77uqwZCdPk/xHtvvBt+9l"
    "/B6hf8TK+25hxljtKkyWETNOmriEK31XKSo2DsvkacCiQ86zrnyiGMDn6BrP1HTLorge238tW50EPkCT2+oe3H"
    "HNEH/rvxuhOJy8cDG2iV/lHN+wzx2lKYzql9ekbcGxRalg+MN4EypxJyKwFz6SA==,keyFactoryAlgorithm:"
    "PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLeng"
    "th:8,encryptedPassword:ffN/oaCqkh8dTHlwN0+9sA=="
)


@pytest.mark.parametrize("cipher", [CBC, GCM])
@pytest.mark.parametrize("bits", [128, 192, 256])
@pytest.mark.parametrize("password", ["", "changeit", "p\u00e4ss,w:o=rd", "\U0001f511" * 20])
def test_what_is_encoded_is_decoded_by_whatever_settings(
    password: str, bits: int, cipher: str
) -> None:
    encoder = PasswordEncoder("s", "PBKDF2WithHmacSHA1", cipher, bits, 1024)
    text = encoder.encode(password, CHANCE)
    assert not password or password not in text
    assert PasswordEncoder("s").decode(text) == password
    assert encoder.encode(password, CHANCE) != text


def test_kafkas_own_are_decoded() -> None:
    assert PasswordEncoder("s3cret").decode(OF_KAFKA) == "changeit"


def test_another_secret_is_told() -> None:
    for cipher in (CBC, GCM):
        text = PasswordEncoder("s", cipher=cipher).encode("changeit", CHANCE)
        with pytest.raises(ConfigError, match="it was encoded under another secret"):
            PasswordEncoder("t").decode(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("changeit", "it is no encoded password"),
        ("", "it is no encoded password"),
        (OF_KAFKA.replace("salt:", "salt:!"), "it is no encoded password"),
        (OF_KAFKA.replace("iterations:4096", "iterations:many"), "it is no encoded password"),
        (OF_KAFKA.replace("iterations:4096", f"iterations:{2**63}"), "it is no encoded password"),
        (OF_KAFKA.replace("AES/CBC/PKCS5Padding", "DES/CBC/PKCS5Padding"), "served are AES/CBC"),
    ],
)
def test_what_is_no_encoded_password_is_told(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        PasswordEncoder("s3cret").decode(text)


def test_settings_are_read_from_properties() -> None:
    assert password_encoder({}) is None
    assert password_encoder({"password.encoder.secret": "s"}) == PasswordEncoder("s")
    given = {
        OLD_SECRET: "o",
        "password.encoder.keyfactory.algorithm": "PBKDF2WithHmacSHA256",
        "password.encoder.cipher.algorithm": GCM,
        "password.encoder.key.length": "256",
        "password.encoder.iterations": "2048",
    }
    expected = PasswordEncoder("o", "PBKDF2WithHmacSHA256", GCM, 256, 2048)
    assert password_encoder(given, OLD_SECRET) == expected


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("cipher.algorithm", "AES/ECB/PKCS5Padding", "served are AES/CBC/PKCS5Padding, AES/GCM"),
        ("keyfactory.algorithm", "PBKDF1", "served are PBKDF2WithHmacSHA1, "),
        ("key.length", "100", "AES has 128, 192, 256"),
        ("iterations", "1000", "must be at least 1024"),
        ("iterations", "many", "is not a number"),
        ("iterations", str(2**31), "is not a number"),
    ],
)
def test_settings_that_nobody_has_are_named(name: str, value: str, why: str) -> None:
    key = f"password.encoder.{name}"
    with pytest.raises(ConfigError, match=f"{key}={value}.*{why}"):
        password_encoder({"password.encoder.secret": "s", key: value})


def test_the_missing_package_cryptography_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for work in (
        lambda: PasswordEncoder("s").encode("x", CHANCE),
        lambda: PasswordEncoder("s3cret").decode(OF_KAFKA),
    ):
        with pytest.raises(ConfigError, match=r"pip install cryptography$"):
            work()


def test_secrets_are_known_by_the_end_of_their_names() -> None:
    secrets = ["listener.name.a.plain.sasl.jaas.config", "listener.name.a.ssl.key.password"]
    assert all(map(is_password, secrets))
    assert not any(map(is_password, ["listener.name.a.ssl.keystore.location", "log.retention.ms"]))
    configs = {secrets[1]: "changeit", "log.retention.ms": "1"}
    made = encode_configs(configs, PasswordEncoder("s"), CHANCE)
    assert made["log.retention.ms"] == "1"
    assert PasswordEncoder("s").decode(made[secrets[1]]) == "changeit"
