"""SCRAM (RFC 5802) as in Kafka (no SASLprep, no channel binding), and a broker's credentials.

Formulas and names only; `client` and `server` have the conversations. docs/decisions/0030 has the
reasons against the library scramp.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from enum import IntEnum
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
_FIELDS: Final = ("salt", "stored_key", "server_key", "iterations")


class ScramMechanism(IntEnum):
    """Mechanisms (`ScramMechanism`). The name with dashes is the config."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def config(self) -> str:
        """`SCRAM-SHA-256`."""
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        """`SHA256`, the name in hashlib."""
        return self.config.removeprefix("SCRAM-").replace("-", "")

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """The salted password."""
        return hashlib.pbkdf2_hmac(self.digest, password.encode(), salt, iterations)

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.digest)

    def client_key(self, salted_password: bytes) -> bytes:
        return self.hmac(salted_password, b"Client Key")

    def server_key(self, salted_password: bytes) -> bytes:
        return self.hmac(salted_password, b"Server Key")

    def stored_key(self, client_key: bytes) -> bytes:
        return hashlib.new(self.digest, client_key).digest()


MECHANISMS: Final = {mechanism.config: mechanism for mechanism in ScramMechanism}


class ScramCredential(NamedTuple):
    """A broker's credential of a user: sufficient to check a proof, not to create one."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of(
        cls, mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int
    ) -> ScramCredential:
        """The credential to store for a salted password."""
        stored_key = mechanism.stored_key(mechanism.client_key(salted_password))
        return cls(salt, stored_key, mechanism.server_key(salted_password), iterations)

    def text(self) -> str:
        """The value in `/config/users/<user>`."""
        return ",".join(
            (
                f"salt={to_base64(self.salt)}",
                f"stored_key={to_base64(self.stored_key)}",
                f"server_key={to_base64(self.server_key)}",
                f"iterations={self.iterations}",
            )
        )

    @classmethod
    def parse(cls, text: str) -> ScramCredential:
        """Read `text()` back.

        Raises:
            ConfigError: the text is malformed. The message does not contain it.
        """
        fields = dict(item.partition("=")[::2] for item in text.split(","))
        if sorted(fields) != sorted(_FIELDS):
            raise ConfigError(f"a SCRAM credential must have exactly {', '.join(_FIELDS)}")
        try:
            salt, stored_key, server_key = (from_base64(fields[name]) for name in _FIELDS[:3])
            return cls(salt, stored_key, server_key, int(fields["iterations"]))
        except ValueError:
            raise ConfigError("a SCRAM credential has a field that cannot be read") from None


def to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def from_base64(text: str) -> bytes:
    """Decode base64. Raises ValueError."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def escape(username: str) -> str:
    """A user name in the form of SCRAM messages."""
    return username.replace("=", "=3D").replace(",", "=2C")


def unescape(name: str) -> str:
    """The user of a SCRAM message. Raises ValueError for an `=` that escapes nothing."""
    username = name.replace("=2C", ",").replace("=3D", "\0")
    if "=" in username:
        raise ValueError(f"{name} is not an escaped user name")
    return username.replace("\0", "=")
