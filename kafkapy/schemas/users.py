"""Authenticates the users of a schema registry (HTTP basic authentication, RFC 7617)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from kafkapy.client.properties import load_properties
from kafkapy.common.errors import ConfigError

_READ_ONLY: Final = "read-only"
_OBSCURED: Final = ("OBF:", "MD5:", "CRYPT:")  # Jetty's, which Confluent's registry accepts


class User(NamedTuple):
    """A user that may write, or only read."""

    name: str
    may_write: bool


class Users:
    """Finds the user of a request."""

    def __init__(self, users: Mapping[User, str]) -> None:
        """`users` have passwords."""
        # Looked up by digest, so that the time of an answer says nothing about a password.
        self._by_digest = {
            _digest(f"{user.name}:{password}".encode()): user for user, password in users.items()
        }

    def authenticated(self, authorization: str) -> User | None:
        """The user with the credentials of a header `Authorization`; None if there is none."""
        scheme, _, credentials = authorization.partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            decoded = base64.b64decode(credentials, validate=True)
        except ValueError:
            return None
        return self._by_digest.get(_digest(decoded))


def load_users(path: str) -> Users:
    """Read a property file: a name, and a password or `password,read-only`.

    Raises:
        ConfigError: names the file, and the user that is wrong; no password is in it.
    """
    users: dict[User, str] = {}
    for name, text in load_properties(path).items():
        password, *roles = (each.strip() for each in text.split(","))
        if not name or ":" in name:
            raise ConfigError(f"{path}: '{name}' is not a user's name: expected one without ':'")
        if not password:
            raise ConfigError(f"{path}: user {name} has no password")
        if password.startswith(_OBSCURED):
            prefix = password.partition(":")[0]
            raise ConfigError(f"{path}: user {name}: expected a plain password, found {prefix}:")
        if roles not in ([], [_READ_ONLY]):
            raise ConfigError(
                f"{path}: user {name}: expected 'password' or 'password,{_READ_ONLY}'"
            )
        users[User(name, may_write=not roles)] = password
    if not users:
        raise ConfigError(f"{path}: there are no users; expected lines such as 'ann: password'")
    return Users(users)


def _digest(credentials: bytes) -> bytes:
    return hashlib.sha256(credentials).digest()
