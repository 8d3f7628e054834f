"""Counts steps, so that a test of a cost needs no clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(function: Callable[[], Any]) -> int:
    """The number of calls of Python functions during a call."""
    count = 0

    def profile(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def assert_linear(function: Callable[[int], Callable[[], Any]], size: int) -> None:
    """Check that a function of twice the size takes no more than three times the steps. A function
    whose cost is quadratic takes four times as many."""
    function(size)()  # imports, caches
    once, twice = steps(function(size)), steps(function(2 * size))
    assert twice < 3 * once, f"{once} steps, and {twice} for twice the size"
