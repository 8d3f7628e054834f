"""Counts of the calls and comparisons that work makes: unlike times, the same on every machine."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", str, int)


def counting_comparisons(kind: type[T]) -> Any:
    """A new subtype of `kind`, whose `times` is the number of comparisons of its values for
    equality."""

    class Compared(kind):  # type: ignore[misc,valid-type]
        times = 0
        __hash__ = kind.__hash__

        def __eq__(self, other: object) -> bool:
            Compared.times += 1
            return kind.__eq__(self, other)

    return Compared


def calls(work: Callable[[], object]) -> Counter[str]:
    """The calls of Python and built-in functions that `work` makes, by name."""
    counted: Counter[str] = Counter()

    def count(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            counted[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            counted[argument.__qualname__] += 1

    # The garbage collector handles earlier objects: its callbacks are not part of this work.
    gc.disable()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    del counted["setprofile"]
    return counted


def assert_at_most(bound: float, work: Callable[[], object], pieces: int) -> None:
    """`work` makes at most `bound` calls for each of its pieces."""
    counted = calls(work)
    each = counted.total() / pieces
    most = "\n".join(f"{n / pieces:6.2f} {name}" for name, n in counted.most_common(25))
    assert each <= bound, (
        f"{each:.2f} calls each, at most {bound} expected; the most called:\n{most}"
    )
