"""Parses the line of a login module, as in `sasl.jaas.config`.

org.apache.kafka.common.security.plain.PlainLoginModule required username="a" user_bob="b";
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError

_OPTION: Final = re.compile(
    r"(\"(?:\\.|[^\"\\])*\"|[\w.$-]+)\s*=\s*(\"(?:\\.|[^\"\\])*\"|[^\s;]+)", re.DOTALL
)
USER_PREFIX: Final = "user_"


class Credentials(NamedTuple):
    """Credentials of PLAIN and SCRAM; `is_token`: they are a delegation token's."""

    username: str
    password: str
    is_token: bool = False


def jaas_options(line: str) -> dict[str, str]:
    """The options of a login module by name."""
    return {_unquote(name): _unquote(value) for name, value in _OPTION.findall(line)}


def jaas_credentials(line: str, key: str = "sasl.jaas.config") -> Credentials:
    """The client's credentials in a line, which is the value of `key`.

    Raises:
        ConfigError: the line names no user.
    """
    options = jaas_options(line)
    if "username" not in options or "password" not in options:
        raise ConfigError(
            f"{key} must name a user, for example: "
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="alice" password="secret";'
        )
    is_token = options.get("tokenauth", "").lower() == "true"
    return Credentials(options["username"], options["password"], is_token)


def jaas_users(line: str) -> dict[str, str]:
    """Passwords by user: the `user_<name>` options that a server of PLAIN knows."""
    return {
        name.removeprefix(USER_PREFIX): password
        for name, password in jaas_options(line).items()
        if name.startswith(USER_PREFIX)
    }


def _unquote(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
