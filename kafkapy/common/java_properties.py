"""Java property files (`java.util.Properties.load`): server.properties, --command-config."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kafkapy.common.errors import ConfigError

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)
# The key ends at the first unescaped separator; blanks around `=` or `:` are not part of anything.
_PAIR: Final = re.compile(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values of a property file; a key given twice keeps its last value.

    Raises:
        ConfigError: a `\\u` escape without four hexadecimal digits; names the line.
    """
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        pair = _PAIR.fullmatch(line)
        assert pair is not None, line
        found[_unescape(pair[1], number)] = _unescape(pair[2], number)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with content and the number of their first line, continuations joined."""
    pending, first = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        first = first if pending else number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield first, pending + line
        pending = ""
    if pending:
        yield first, pending


def _unescape(text: str, line: int) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if code == "u":
            raise ConfigError(f"line {line}: \\u needs four hexadecimal digits")
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)

    return _ESCAPE.sub(plain, text) if "\\" in text else text
