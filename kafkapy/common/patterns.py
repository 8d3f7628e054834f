"""Regular expressions that users give."""

from __future__ import annotations

import re
from typing import Any, Final

PATTERN_ERRORS: Final = (re.error, OverflowError, RecursionError)
"""The exceptions of `re.compile`, also for `a{99999999999}` and thousands of parentheses."""


class InvalidPattern(ValueError):
    """RE2 refuses a regular expression; the message is its reason."""


def compile_linear(pattern: str, max_memory_bytes: int) -> Any:
    """An expression of RE2, for patterns that clients choose: a match takes time in proportion to
    the text. It captures no groups, which made some matches 10,000 times slower.

    Raises:
        InvalidPattern: it is not RE2's syntax, or needs more memory.
    """
    import re2  # most processes have no such pattern

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = max_memory_bytes
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else "it cannot be read"
        raise InvalidPattern(
            reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        ) from None
