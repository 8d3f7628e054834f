"""Counts steps, so that a test of a cost needs no clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

_PACKAGE: Final = f"{Path('kafkapy') / 'schemas'}"


def steps(function: Callable[[], Any]) -> int:
    """The number of calls of Python functions during a call, and of the lines that the functions of
    schemas run: each item of a comprehension is a line."""
    count = 0

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace if _PACKAGE in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def assert_linear(function: Callable[[int], Callable[[], Any]], size: int) -> None:
    """Check that a function of twice the size takes no more than three times the steps. A function
    whose cost is quadratic takes four times as many."""
    function(size)()  # imports, caches
    once, twice = steps(function(size)), steps(function(2 * size))
    assert twice < 3 * once, f"{once} steps, and {twice} for twice the size"
