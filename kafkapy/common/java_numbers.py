"""Numbers as Java reads and writes them: `int`, `%f` and `toString`."""

from __future__ import annotations

import math
from struct import Struct
from typing import Final

INT_MAX: Final = 2**31 - 1
DOUBLE: Final = Struct(">d")
_NATURAL_DIGITS_MAX: Final = 100  # Python parses at most 4,300 digits
_DIGITS_MAX: Final = 16  # after the decimal point, for 64 bits


def is_natural(text: str, bits: int = 31) -> bool:
    """Whether a text is a Java `int` that is not negative, for example a broker id. With 63 `bits`,
    whether it is a `long` that is not negative.
    """
    return text.isdecimal() and len(text) <= _NATURAL_DIGITS_MAX and int(text) < 1 << bits


def is_integer(text: str, bits: int = 31) -> bool:
    """As `is_natural`, also for negative numbers."""
    return is_natural(text.removeprefix("-"), bits)


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
    """The shortest text, of at least two digits, that stands for no other number."""
    for digits in range(1, _DIGITS_MAX):
        text = f"{number:.{digits}e}"
        try:
            if layout.pack(float(text)) == layout.pack(number):
                return text
        except OverflowError:
            continue  # rounded up, beyond the largest number
    return f"{number:.{_DIGITS_MAX}e}"
