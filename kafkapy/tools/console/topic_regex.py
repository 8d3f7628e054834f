"""Translates Java's regular expressions to POSIX syntax, which librdkafka uses."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = r"\\.|\(\?:|."
# Outside of brackets, and in brackets.
_OUTSIDE: Final = {r"\d": "[0-9]", r"\D": "[^0-9]", "(?:": "("}
_INSIDE: Final = {r"\d": "0-9", r"\w": "A-Za-z0-9_", r"\.": ".", r"\-": ""}


def posix_regex(text: str) -> str:
    r"""The expression in POSIX syntax. Translates `\d`, `\D` outside of brackets, `\w`, `\.` and
    `\-` in brackets, and non-capturing groups. Leaves the rest unchanged.
    """
    found: list[str] = []
    is_inside = has_dash = False
    for token in re.findall(_TOKEN, text, re.DOTALL):
        if is_inside and token == "]":
            # In POSIX, a dash at the end of brackets is literal.
            found.append("-]" if has_dash else "]")
            is_inside = has_dash = False
            continue
        has_dash = has_dash or (is_inside and token == r"\-")
        found.append((_INSIDE if is_inside else _OUTSIDE).get(token, token))
        is_inside = is_inside or token == "["
    return "".join(found)
