"""Numbers as Java reads and writes them."""

import math
import struct

import pytest

from kafkapy.common.java_numbers import decimal, is_integer, is_natural, ratio, real


def test_ids_of_brokers() -> None:
    """Python's own limit, of 4,300 digits, was an error that named no option."""
    assert all(map(is_natural, ("0", "07", "2147483647")))
    wrong = ("", "-1", " 1", "x", "\u00b2", "2147483648", "9" * 5000)
    assert not any(map(is_natural, wrong))


@pytest.mark.parametrize(
    ("numerator", "denominator", "text"),
    [(1, 3, "0.33"), (0, 0, "NaN"), (2, 0, "Infinity"), (-2, 0, "-Infinity")],
)
def test_divisions(numerator: float, denominator: float, text: str) -> None:
    assert decimal(ratio(numerator, denominator), 2) == text


def test_only_nan_is_nan() -> None:
    assert math.isnan(ratio(0, 0))


@pytest.mark.parametrize(
    ("layout", "number", "text"),
    [
        (">f", 0.1, "0.1"),
        (">f", 16777216.0, "1.6777216E7"),
        (">f", 3.4028234663852886e38, "3.4028235E38"),
        (">f", 1.401298464324817e-45, "1.4E-45"),
        (">f", math.nan, "NaN"),
        (">d", 0.1, "0.1"),
        (">d", 0.0, "0.0"),
        (">d", -0.0, "-0.0"),
        (">d", 100.0, "100.0"),
        (">d", 1234567.25, "1234567.25"),
        (">d", 1e7, "1.0E7"),
        (">d", -0.001, "-0.001"),
        (">d", 0.00012, "1.2E-4"),
        (">d", 1.7976931348623157e308, "1.7976931348623157E308"),
        (">d", 5e-324, "4.9E-324"),
        (">d", 2e-323, "2.0E-323"),
        (">d", -math.inf, "-Infinity"),
    ],
)
def test_reals(layout: str, number: float, text: str) -> None:
    assert real(struct.Struct(layout), number) == text


def test_longs() -> None:
    assert [is_natural(text, 63) for text in (str(2**63 - 1), str(2**63))] == [True, False]


def test_integers() -> None:
    assert all(map(is_integer, ("-7", "7")))
    assert not any(map(is_integer, ("--7", "2147483648")))
    assert is_integer(str(1 - 2**63), 63)
