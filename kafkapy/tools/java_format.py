"""Formats numbers and dates like Java's `%f` and `SimpleDateFormat`."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Final

from kafkapy.common.errors import ConfigError

_TOKENS: Final = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
}
_PATTERN: Final = re.compile(r"([A-Za-z])\1*|'([^']*)'|[^A-Za-z']+")


def ratio(numerator: float, denominator: float) -> float:
    """Java's division of doubles: infinite or NaN if the denominator is 0."""
    if denominator:
        return numerator / denominator
    return math.nan if numerator == 0 else math.copysign(math.inf, numerator)


def decimal(value: float, digits: int) -> str:
    """`%.<digits>f`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.{digits}f}"


class DateFormat:
    """A pattern such as `yyyy-MM-dd HH:mm:ss:SSS`, in local time."""

    def __init__(self, pattern: str) -> None:
        """
        Raises:
            ConfigError: the pattern has an unsupported letter, which is named.
        """
        self._parts: list[tuple[bool, str]] = []
        for match in _PATTERN.finditer(pattern):
            word = match[0]
            if match[2] is not None:
                self._parts.append((False, match[2] or "'"))
            elif not match[1]:
                self._parts.append((False, word))
            elif word in _TOKENS or set(word) == {"S"}:
                self._parts.append((True, word))
            else:
                raise ConfigError(
                    f"The date format '{pattern}' has '{word}'; served are"
                    f" {', '.join(_TOKENS)} and SSS"
                )

    def format(self, epoch_ms: int) -> str:
        """A time as text."""
        moment = datetime.fromtimestamp(epoch_ms // 1000)
        shown = []
        for is_token, word in self._parts:
            if not is_token:
                shown.append(word)
            elif word in _TOKENS:
                shown.append(moment.strftime(_TOKENS[word]))
            else:
                shown.append(str(epoch_ms % 1000).rjust(len(word), "0"))
        return "".join(shown)
