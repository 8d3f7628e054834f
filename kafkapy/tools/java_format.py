"""Formats dates like Java's `SimpleDateFormat`."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from kafkapy.common.errors import ConfigError

_TOKENS: Final = {
    "yyyy": "",
    "yy": "",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
}
# How many digits of a year are shown; 0 means all.
_YEAR_DIGITS: Final = {"yyyy": 0, "yy": 2}
_CYCLE_YEARS: Final = 400  # the calendar repeats after this time
_CYCLE_S: Final = 146_097 * 86_400
_PATTERN: Final = re.compile(r"([A-Za-z])\1*|'([^']*)'|[^A-Za-z']+")


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
        # Python's years end at 9999, but a delegation token may expire at Java's Long.MAX_VALUE.
        second = epoch_ms // 1000
        cycles = second // _CYCLE_S if abs(second) > _CYCLE_S else 0
        moment = datetime.fromtimestamp(second - cycles * _CYCLE_S)
        year = moment.year + _CYCLE_YEARS * cycles
        shown = []
        for is_token, word in self._parts:
            if not is_token:
                shown.append(word)
            elif word in _YEAR_DIGITS:
                year_of_era = str(year if year > 0 else 1 - year).rjust(4, "0")
                shown.append(year_of_era[-_YEAR_DIGITS[word] :])
            elif word in _TOKENS:
                shown.append(moment.strftime(_TOKENS[word]))
            else:
                shown.append(str(epoch_ms % 1000).rjust(len(word), "0"))
        return "".join(shown)
