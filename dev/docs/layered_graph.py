"""A layered drawing of a graph without cycles: each node is above all nodes that it leads to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from statistics import fmean

from dev.docs.svg import WIDTH, Box, Drawing

Edges = Mapping[str, Collection[str]]
Edge = tuple[str, str]

ORDER_SWEEPS, SWEEPS, PULL = 24, 200, 0.15
NODE_HEIGHT, FLOOR_HEIGHT, GAP = 28.0, 62.0, 16.0


def reachable(edges: Edges, start: str) -> set[str]:
    """Nodes that can be reached from `start` over one or more edges."""
    seen: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += edges[node]
    return seen


def reduced(edges: Edges) -> dict[str, list[str]]:
    """The edges that are not implied by a longer path."""
    return {
        node: sorted(
            target
            for target in targets
            if not any(target in reachable(edges, other) for other in targets if other != target)
        )
        for node, targets in edges.items()
    }


def floors(edges: Edges) -> dict[str, int]:
    """The floor of each node, counted from the top: the longest path to it from any node."""
    floor = dict.fromkeys(edges, 0)
    for _ in edges:
        for node in edges:
            for target in edges[node]:
                floor[target] = max(floor[target], floor[node] + 1)
    # A node without incoming edges is just above the nodes that it leads to.
    led_to = {target for targets in edges.values() for target in targets}
    for node in edges:
        if node not in led_to and edges[node]:
            floor[node] = min(floor[target] for target in edges[node]) - 1
    return floor


def draw(
    edges: Edges, title: str, fill: Mapping[str, str], dashed: Collection[Edge] = ()
) -> Drawing:
    """The graph under a heading."""
    drawing = Drawing(title)
    kept, floor = reduced(edges), floors(edges)
    chains = {
        (node, target): [node, *_between(node, target, floor), target]
        for node in kept
        for target in kept[node]
    }
    place = _across(floor, chains)
    top = drawing.heading(title) + 22
    boxes = {
        node: Box(place[node], top + FLOOR_HEIGHT * floor[node], _width(node), NODE_HEIGHT)
        for node in kept
    }
    for edge, chain in chains.items():
        drawing.path(_curve(chain, place, boxes), edge in dashed, arrow=True)
    for node, box in boxes.items():
        drawing.box(box, node, fill[node])
    return drawing


def _between(node: str, target: str, floor: Mapping[str, int]) -> list[str]:
    """Names for the places where an edge crosses the floors on its way."""
    return [f"{node} {target} {at}" for at in range(floor[node] + 1, floor[target])]


def _width(node: str) -> float:
    return 6.0 if " " in node else 8.2 * len(node) + 20


def _across(floor: Mapping[str, int], chains: Mapping[Edge, list[str]]) -> dict[str, float]:
    """The x of each node and crossing, chosen so that edges are short and cross seldom."""
    rows: dict[int, list[str]] = {}
    for node, at in floor.items():
        rows.setdefault(at, []).append(node)
    for (node, _), chain in chains.items():
        for number, crossing in enumerate(chain[1:-1], floor[node] + 1):
            rows[number].append(crossing)
    beside: dict[str, list[str]] = {name: [] for row in rows.values() for name in row}
    for chain in chains.values():
        for upper, lower in pairwise(chain):
            beside[upper].append(lower)
            beside[lower].append(upper)
    place = {
        name: (number - len(row) / 2) * 100
        for row in rows.values()
        for number, name in enumerate(row)
    }
    for sweep in range(SWEEPS):
        for at in sorted(rows, reverse=bool(sweep % 2)):
            wished = {name: _mean(name, beside, place) for name in rows[at]}
            if sweep < ORDER_SWEEPS:
                rows[at].sort(key=lambda name: (wished[name], name))
            _spread(rows[at], wished, place)
    left = min(place[name] - _width(name) / 2 for name in floor)
    right = max(place[name] + _width(name) / 2 for name in floor)
    middle = (left + right) / 2
    return {name: x - middle + WIDTH / 2 for name, x in place.items()}


def _mean(name: str, beside: Mapping[str, list[str]], place: Mapping[str, float]) -> float:
    """Mean position of the joined nodes, a little nearer to the middle, to keep nodes together."""
    wish = fmean(place[other] for other in beside[name]) if beside[name] else place[name]
    return wish * (1 - PULL)


def _spread(row: list[str], wished: Mapping[str, float], place: dict[str, float]) -> None:
    """Place the nodes of a row near their wished positions, in its order, without overlaps."""
    from_left, from_right = dict(wished), dict(wished)
    for before, name in pairwise(row):
        apart = (_width(before) + _width(name)) / 2 + GAP
        from_left[name] = max(from_left[name], from_left[before] + apart)
    for name, after in reversed(list(pairwise(row))):
        apart = (_width(name) + _width(after)) / 2 + GAP
        from_right[name] = min(from_right[name], from_right[after] - apart)
    place |= {name: (from_left[name] + from_right[name]) / 2 for name in row}


def _curve(chain: list[str], place: Mapping[str, float], boxes: Mapping[str, Box]) -> str:
    """A line from box to box that leaves and enters each floor vertically."""
    first, last = boxes[chain[0]], boxes[chain[-1]]
    x, y = first.x, first.y + NODE_HEIGHT / 2
    path = f"M{x:.1f} {y:.1f}"
    for number, crossing in enumerate(chain[1:-1], 1):
        at = first.y + FLOOR_HEIGHT * number
        path += _bend(x, y, place[crossing], at - NODE_HEIGHT / 2) + f" V{at + NODE_HEIGHT / 2:.1f}"
        x, y = place[crossing], at + NODE_HEIGHT / 2
    return path + _bend(x, y, last.x, last.y - NODE_HEIGHT / 2 - 1)


def _bend(x1: float, y1: float, x2: float, y2: float) -> str:
    """A curve from one floor to the next, vertical at both ends."""
    middle = (y1 + y2) / 2
    return f" C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
