"""Balances the load of brokers, one item at a time: `balance`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

_Item = TypeVar("_Item")


def balance(
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
    finished: set[int] = set()
    while True:
        unfinished = [broker_id for broker_id in sorted(loads) if broker_id not in finished]
        if not unfinished:
            return
        max_load = max(loads[broker_id] for broker_id in unfinished)
        most_loaded = [broker_id for broker_id in unfinished if loads[broker_id] == max_load]
        paths = (_direct_path(loads, source, movable) for source in most_loaded)
        path = next(filter(None, paths), []) or _shortest_path(
            loads, most_loaded[0], movable, finished
        )
        # From the end, so that each broker in between gives an item before it takes one.
        for giver, taker in reversed(list(pairwise(path))):
            item = movable(giver, taker)
            assert item is not None, (giver, taker)
            move(item, giver, taker)


def _direct_path(
    loads: dict[int, int], source: int, movable: Callable[[int, int], _Item | None]
) -> list[int]:
    """The source and the least loaded broker that can take an item from it; empty if none can."""
    limit = loads[source] - 2
    takers = sorted((load, b) for b, load in loads.items() if load <= limit)
    return next(([source, b] for _, b in takers if movable(source, b) is not None), [])


def _shortest_path(
    loads: dict[int, int],
    source: int,
    movable: Callable[[int, int], _Item | None],
    finished: set[int],
) -> list[int]:
    """The shortest path to a broker with at least two items less. Without one, all brokers reached
    are added to `finished`.
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
                path = [taker]
                while path[-1] != source:
                    path.append(came_from[path[-1]])
                return path[::-1]
            queue.append(taker)
    finished.update(came_from)
    return []
