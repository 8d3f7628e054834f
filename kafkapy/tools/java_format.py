"""Formats numbers and dates like Java's `%f` and `SimpleDateFormat`."""

from __future__ import annotations

import math
import re
from datetime import datetime
from struct import Struct
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
_DIGITS_MAX: Final = 16  # behind the point, of 64 bits
# The digits of a year that are shown.
_YEARS: Final = {"yyyy": 0, "yy": 2}
_CYCLE_YEARS: Final = 400  # after which the calendar is the same
_CYCLE_S: Final = 146_097 * 86_400
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


def real(layout: Struct, number: float) -> str:
    """`Float.toString` or `Double.toString` of a number that has this layout (`>f`, `>d`)."""
    if not math.isfinite(number) or number == 0:
        return decimal(number, 1)
    mantissa, _, power = _shortest(layout, number).partition("e")
    sign, digits, exponent = "-" * (number < 0), mantissa.lstrip("-").replace(".", ""), int(power)
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:]}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits.rstrip('0')}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction or '0'}"


def _shortest(layout: Struct, number: float) -> str:
    """The fewest digits, two at least, that stand for no other number."""
    for digits in range(1, _DIGITS_MAX):
        text = f"{number:.{digits}e}"
        try:
            if layout.pack(float(text)) == layout.pack(number):
                return text
        except OverflowError:
            continue  # rounded up, beyond the highest
    return f"{number:.{_DIGITS_MAX}e}"


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
        # Python has years of four digits, and a token may end with the last of Java's `long`.
        second = epoch_ms // 1000
        cycles = second // _CYCLE_S if abs(second) > _CYCLE_S else 0
        moment = datetime.fromtimestamp(second - cycles * _CYCLE_S)
        year = moment.year + _CYCLE_YEARS * cycles
        shown = []
        for is_token, word in self._parts:
            if not is_token:
                shown.append(word)
            elif word in _YEARS:
                year_of_era = str(year if year > 0 else 1 - year).rjust(4, "0")
                shown.append(year_of_era[-_YEARS[word] :])
            elif word in _TOKENS:
                shown.append(moment.strftime(_TOKENS[word]))
            else:
                shown.append(str(epoch_ms % 1000).rjust(len(word), "0"))
        return "".join(shown)
