"""Divides changes of many resources into several requests.

Brokers make the changes of a request one after the other, and each takes some writes to ZooKeeper.
One request with thousands of changes takes longer than `request.timeout.ms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

PER_REQUEST: Final = 100

_T = TypeVar("_T")


def batches(items: Sequence[_T], size: int = PER_REQUEST) -> Iterator[Sequence[_T]]:
    """The items in batches of `size`."""
    return (items[at : at + size] for at in range(0, len(items), size))
