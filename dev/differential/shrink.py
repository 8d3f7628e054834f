"""Shrinks a sequence that fails: removes items that the failure does not need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrink(
    items: Sequence[T], fails: Callable[[tuple[T, ...]], bool], attempts: int
) -> tuple[T, ...]:
    """A subsequence that still fails: runs of items are left out, longer ones first.

    `fails` is called `attempts` times at most.
    """
    kept = tuple(items)
    size = max(1, len(kept) // 2)
    while attempts > 0:
        start = 0
        shrunk = False
        while start < len(kept) and attempts > 0:
            less = kept[:start] + kept[start + size :]
            attempts -= 1
            if less and fails(less):
                kept, shrunk = less, True
            else:
                start += size
        if size == 1 and not shrunk:
            break
        size = max(1, size // 2)
    return kept
