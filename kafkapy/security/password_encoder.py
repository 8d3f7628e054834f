"""Passwords as Kafka keeps them in ZooKeeper (`EncryptingPasswordEncoder`): encrypted with a secret
from the broker's server.properties, and stored with the other parameters for decoding.

    keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,
    salt:<base64>,iterations:4096,encryptedPassword:<base64>,passwordLength:8,
    initializationVector:<base64>

The package `cryptography` (the extra `keystores`) has the cipher; it is imported on first use.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import is_natural

SECRET: Final = "password.encoder.secret"
OLD_SECRET: Final = "password.encoder.old.secret"
KEY_FACTORY: Final = "password.encoder.keyfactory.algorithm"
CIPHER: Final = "password.encoder.cipher.algorithm"
KEY_LENGTH: Final = "password.encoder.key.length"
ITERATIONS: Final = "password.encoder.iterations"
PREFIX: Final = "password.encoder."

CBC: Final = "AES/CBC/PKCS5Padding"
GCM: Final = "AES/GCM/NoPadding"
_PASSWORD_SUFFIXES: Final = (
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "sasl.jaas.config",
)
_IV_BYTES: Final = {CBC: 16, GCM: 12}
_TAG_BITS: Final = 128
_BLOCK_BITS: Final = 128
_KEY_BITS: Final = (128, 192, 256)
_SALT_BYTES: Final = 256
_HASHES: Final = {f"PBKDF2WithHmacSHA{size}": f"sha{size}" for size in (1, 224, 256, 384, 512)}
_DEFAULT_KEY_FACTORY: Final = "PBKDF2WithHmacSHA512"

# Returns this number of random bytes.
RandomBytes = Callable[[int], bytes]


class PasswordEncoder(NamedTuple):
    """Encodes with a secret and these settings. Decodes everything that was encoded with the
    secret.
    """

    secret: str
    key_factory: str = _DEFAULT_KEY_FACTORY
    cipher: str = CBC
    key_length_bits: int = 128
    iterations: int = 4096

    def encode(self, password: str, random_bytes: RandomBytes) -> str:
        """The password in its stored form.

        Raises:
            ConfigError: `cryptography` is not installed.
        """
        salt, vector = random_bytes(_SALT_BYTES), random_bytes(_IV_BYTES[self.cipher])
        key = self._key(self.key_factory, salt, self.iterations, self.key_length_bits)
        encrypted = _encrypt(self.cipher, key, vector, password.encode())
        rows = {
            "keyFactoryAlgorithm": self.key_factory,
            "cipherAlgorithm": self.cipher,
            "keyLength": str(self.key_length_bits),
            "salt": _text(salt),
            "iterations": str(self.iterations),
            "encryptedPassword": _text(encrypted),
            "passwordLength": str(_java_length(password)),
            "initializationVector": _text(vector),
        }
        if self.cipher == GCM:
            rows["authenticationTagLength"] = str(_TAG_BITS)
        return ",".join(f"{name}:{value}" for name, value in rows.items())

    def decode(self, encoded: str) -> str:
        """The password.

        Raises:
            ConfigError: it was encoded with another secret or an unknown algorithm, or is damaged;
              or `cryptography` is not installed.
        """
        rows = dict(_row(item) for item in encoded.split(","))
        try:
            cipher, key_factory = rows["cipherAlgorithm"], rows["keyFactoryAlgorithm"]
            _check_algorithms(key_factory, cipher)
            salt, vector = _bytes(rows["salt"]), _bytes(rows["initializationVector"])
            key = self._key(key_factory, salt, int(rows["iterations"]), int(rows["keyLength"]))
            plain = _decrypt(cipher, key, vector, _bytes(rows["encryptedPassword"]))
            length = int(rows["passwordLength"])
        except (KeyError, ValueError, OverflowError) as error:
            raise ConfigError(f"it is no encoded password ({error!r})") from error
        # With a wrong key, the result may end with valid padding by chance.
        if plain is None or _java_length(plain) != length:
            raise ConfigError("it was encoded under another secret")
        return plain

    def _key(self, key_factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
        secret, name = self.secret.encode(), _HASHES[key_factory]
        return hashlib.pbkdf2_hmac(name, secret, salt, iterations, bits // 8)


def password_encoder(
    properties: Mapping[str, str], secret_key: str = SECRET
) -> PasswordEncoder | None:
    """The encoder of a broker's properties, with the secret of `secret_key`; None without one.

    Raises:
        ConfigError: names the property, its value and what is allowed.
    """
    secret = properties.get(secret_key)
    if secret is None:
        return None
    encoder = PasswordEncoder(
        secret,
        properties.get(KEY_FACTORY, _DEFAULT_KEY_FACTORY),
        properties.get(CIPHER, CBC),
        _number(properties, KEY_LENGTH, 128),
        _number(properties, ITERATIONS, 4096),
    )
    _check_algorithms(encoder.key_factory, encoder.cipher)
    if encoder.key_length_bits not in _KEY_BITS:
        allowed = ", ".join(map(str, _KEY_BITS))
        raise ConfigError(f"{KEY_LENGTH}={encoder.key_length_bits}: AES has {allowed}")
    if encoder.iterations < 1024:
        raise ConfigError(f"{ITERATIONS}={encoder.iterations} must be at least 1024")
    return encoder


def is_password(name: str) -> bool:
    """Whether a dynamic broker config is a secret, with any prefix, as in Kafka."""
    return name.endswith(_PASSWORD_SUFFIXES)


def encode_configs(
    configs: Mapping[str, str], encoder: PasswordEncoder, random_bytes: RandomBytes
) -> dict[str, str]:
    """A broker's configs in their stored form. Raises as `PasswordEncoder.encode`."""
    return {
        name: encoder.encode(value, random_bytes) if is_password(name) else value
        for name, value in configs.items()
    }


def _check_algorithms(key_factory: str, cipher: str) -> None:
    for key, value, allowed in (
        (KEY_FACTORY, key_factory, _HASHES),
        (CIPHER, cipher, _IV_BYTES),
    ):
        if value not in allowed:
            raise ConfigError(f"{key}={value}: served are {', '.join(allowed)}")


def _number(properties: Mapping[str, str], key: str, default: int) -> int:
    text = properties.get(key, str(default)).strip()
    if not is_natural(text):
        raise ConfigError(f"{key}={text} is not a number")
    return int(text)


def _encrypt(cipher: str, key: bytes, vector: bytes, plain: bytes) -> bytes:
    _require_cryptography()
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.padding import PKCS7

    if cipher == GCM:
        return AESGCM(key).encrypt(vector, plain, None)
    padder = PKCS7(_BLOCK_BITS).padder()
    padded = padder.update(plain) + padder.finalize()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    return encryptor.update(padded) + encryptor.finalize()


def _decrypt(cipher: str, key: bytes, vector: bytes, encrypted: bytes) -> str | None:
    """The text, or None if the key is wrong."""
    _require_cryptography()
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.padding import PKCS7

    try:
        if cipher == GCM:
            return AESGCM(key).decrypt(vector, encrypted, None).decode()
        decryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
        padded = decryptor.update(encrypted) + decryptor.finalize()
        unpadder = PKCS7(_BLOCK_BITS).unpadder()
        return (unpadder.update(padded) + unpadder.finalize()).decode()
    except (InvalidTag, ValueError):
        return None


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise ConfigError(
            "encoded passwords need the package cryptography: pip install cryptography"
        ) from None


def _java_length(text: str) -> int:
    """The length in UTF-16 units, as in Java."""
    return len(text.encode("utf-16-le")) // 2


def _row(item: str) -> tuple[str, str]:
    name, _, value = item.partition(":")
    return name.strip(), value.strip()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
