"""Regular expressions that users give."""

from __future__ import annotations

import re
from typing import Final

PATTERN_ERRORS: Final = (re.error, OverflowError, RecursionError)
"""The exceptions of `re.compile`, also for `a{99999999999}` and thousands of parentheses."""
