"""Parses the line of a login module, as in `sasl.jaas.config`.

org.apache.kafka.common.security.plain.PlainLoginModule required username="a" user_bob="b";
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError

_QUOTED: Final = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
_OPTION: Final = re.compile(rf"({_QUOTED}|[\w.$-]+)\s*=\s*({_QUOTED}|[^\s;]+)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
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
    """Passwords by user: the `user_<name>` options of a PLAIN server."""
    return {
        name.removeprefix(USER_PREFIX): password
        for name, password in jaas_options(line).items()
        if name.startswith(USER_PREFIX)
    }


def unescape(text: str) -> str:
    """The text between quotes as Java's `StreamTokenizer` reads it: \\t is a tab, \\101 an A, and
    other characters stand for themselves.
    """
    return _ESCAPE.sub(_decode_escape, text)


def _decode_escape(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code, 8)) if "0" <= code[0] <= "7" else _ESCAPED.get(code, code)


def _unquote(value: str) -> str:
    is_quoted = value[0] in "\"'" and value.endswith(value[0])
    return unescape(value[1:-1]) if is_quoted else value
