"""Balances the load of brokers, one item at a time: `level`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

_Item = TypeVar("_Item")


def level(
    loads: dict[int, int],
    movable: Callable[[int, int], _Item | None],
    move: Callable[[_Item, int, int], None],
) -> None:
    """Move items until no broker has two more than another that could take one of them.

    `movable(source, target)` returns an item that may move from one broker to the other, and `move`
    moves it and updates `loads` (items by broker). If no direct move is possible, items move in a
    chain, in which each broker takes one and gives another. A broker without a path to a less
    loaded one keeps its load, and so do the brokers on its paths.
    """
    settled: set[int] = set()
    while True:
        free = [broker_id for broker_id in sorted(loads) if broker_id not in settled]
        if not free:
            return
        most = max(loads[broker_id] for broker_id in free)
        fullest = [broker_id for broker_id in free if loads[broker_id] == most]
        ways = (_straight(loads, source, movable) for source in fullest)
        way = next(filter(None, ways), []) or _chain(loads, fullest[0], movable, settled)
        # From the end, so that each broker in between gives an item before it takes one.
        for giver, taker in reversed(list(pairwise(way))):
            item = movable(giver, taker)
            assert item is not None, (giver, taker)
            move(item, giver, taker)


def _straight(
    loads: dict[int, int], source: int, movable: Callable[[int, int], _Item | None]
) -> list[int]:
    """The source and the least loaded broker that can take an item from it; empty if none can."""
    limit = loads[source] - 2
    takers = sorted((load, b) for b, load in loads.items() if load <= limit)
    return next(([source, b] for _, b in takers if movable(source, b) is not None), [])


def _chain(
    loads: dict[int, int],
    source: int,
    movable: Callable[[int, int], _Item | None],
    settled: set[int],
) -> list[int]:
    """The shortest path to a broker with at least two items less. Without one, all brokers reached
    are added to `settled`.
    """
    came_from = {source: source}
    queue = deque([source])
    limit = loads[source] - 2
    while queue:
        giver = queue.popleft()
        for taker in sorted(loads):
            if taker in came_from or movable(giver, taker) is None:
                continue
            came_from[taker] = giver
            if loads[taker] <= limit:
                way = [taker]
                while way[-1] != source:
                    way.append(came_from[way[-1]])
                return way[::-1]
            queue.append(taker)
    settled.update(came_from)
    return []
