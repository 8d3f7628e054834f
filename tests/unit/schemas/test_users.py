"""Logins at a schema registry, and its file of users."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.users import User, load_users

FILE = """
# users
ann: se:cret
bob = pass\\u0077örd , read-only
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "users"


def basic(credentials: str, scheme: str = "Basic") -> str:
    return f"{scheme} {base64.b64encode(credentials.encode()).decode()}"


@pytest.mark.parametrize(
    ("authorization", "user"),
    [
        (basic("ann:se:cret"), User("ann", may_write=True)),
        (basic("ann:se:cret", "BASIC"), User("ann", may_write=True)),
        (basic("bob:passwörd"), User("bob", may_write=False)),
        (basic("ann:passwörd"), None),
        (basic("ann:"), None),
        (basic("ann"), None),
        (basic(":"), None),
        (basic("ann:se:cret", "Bearer"), None),
        ("Basic", None),
        ("Basic ???", None),
        ("Basic é", None),
        ("", None),
    ],
)
def test_users_are_known_by_their_credentials(
    path: Path, authorization: str, user: User | None
) -> None:
    path.write_text(FILE)
    assert load_users(str(path)).authenticated(authorization) == user


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("# none\n", "there are no users; expected lines such as 'ann: password'"),
        ("ann:\n", "user ann has no password"),
        ("ann: ,read-only\n", "user ann has no password"),
        (": pw\n", "'' is not a user's name: expected one without ':'"),
        ("a\\:b: pw\n", "'a:b' is not a user's name: expected one without ':'"),
        ("ann: pw,readonly\n", "user ann: expected 'password' or 'password,read-only'"),
        ("ann: pw,read-only,\n", "user ann: expected 'password' or 'password,read-only'"),
        ("ann: MD5:5f4d\n", "user ann: expected a plain password, found MD5:"),
    ],
)
def test_a_wrong_file_of_users_is_refused(path: Path, text: str, error: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_users(str(path))
    assert str(raised.value) == f"{path}: {error}"
