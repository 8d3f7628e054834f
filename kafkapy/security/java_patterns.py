"""Patterns and replacements of rules in Java's syntax (`java.util.regex`), for names of users."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.common.patterns import PATTERN_ERRORS

_REPLACEMENT_PART: Final = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}|([^\\$])", re.ASCII | re.DOTALL)

Replace = Callable[[re.Match[str]], str]


def java_pattern(text: str, key: str) -> re.Pattern[str]:
    """Compile a pattern in Java's syntax. Raises ConfigError: it is malformed."""
    try:
        # Java's named groups have no P, and its character classes and cases are ASCII only.
        return re.compile(re.sub(r"\(\?<(?=\w)", "(?P<", text), re.ASCII)
    except (*PATTERN_ERRORS, ValueError) as error:
        raise ConfigError(f"{key}: {text} is not a pattern: {error}") from None


def java_replacement(text: str, pattern: re.Pattern[str] | None, where: str) -> Replace:
    """The replacement of Java's `replaceAll`: $1 is a group, and \\ escapes a character. Raises
    ConfigError: it is malformed, or names a group that does not exist.
    """
    groups = 0 if pattern is None else pattern.groups
    names = {} if pattern is None else pattern.groupindex
    parts: list[str | int] = []
    position = 0
    while position < len(text):
        found = _REPLACEMENT_PART.match(text, position)
        if found is None:
            raise ConfigError(f"{where}: {text} ends or goes on wrongly at {text[position:]}")
        escaped, digits, name, plain = found.groups()
        position = found.end()
        if digits is not None:
            # The longest group number that exists, at least one digit.
            size = len(digits)
            while size > 1 and int(digits[:size]) > groups:
                size -= 1
            position -= len(digits) - size
            parts.append(int(digits[:size]))
        elif name is not None:
            parts.append(names.get(name, groups + 1))
        else:
            parts.append(plain if escaped is None else escaped)
        if isinstance(parts[-1], int) and parts[-1] > groups:
            raise ConfigError(f"{where}: there is no group {found[0]}")
    return lambda match: "".join(p if isinstance(p, str) else match[p] or "" for p in parts)
