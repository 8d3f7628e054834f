"""Java property files (`java.util.Properties.load`): server.properties, --command-config."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kafkapy.common.errors import ConfigError

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED: Final = {char: f"\\{letter}" for letter, char in _ESCAPES.items()}
_KEY: Final = re.compile(r"[^\x21-\x7e]|[\\=:#!]")
_VALUE: Final = re.compile(r"[^\x20-\x7e]|\\|^ ")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)
# The key ends at the first unescaped separator; blanks around `=` or `:` are ignored.
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

    if "\\" not in text:
        return text
    # Java writes a character beyond the basic plane as two escapes.
    halves = _ESCAPE.sub(plain, text).encode("utf-16-be", "surrogatepass")
    return halves.decode("utf-16-be", "surrogatepass")


def format_properties(properties: Mapping[str, str]) -> str:
    """A property file in ASCII, from which `parse_properties` and Java read the same values."""
    return "".join(f"{_escaped(k, _KEY)}={_escaped(v, _VALUE)}\n" for k, v in properties.items())


def _escaped(text: str, special: re.Pattern[str]) -> str:
    def escape(match: re.Match[str]) -> str:
        char = match[0]
        if char in _ESCAPED:
            return _ESCAPED[char]
        if char.isascii() and char.isprintable():
            return f"\\{char}"
        units = char.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))

    return special.sub(escape, text)
