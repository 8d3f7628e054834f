"""Assignments of partitions to brokers for tests of planners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from hypothesis import strategies as st

from kafkapy.common.placement import BrokerPlace
from kafkapy.common.topic_partition import TopicPartition

Assignment = Mapping[TopicPartition, tuple[int, ...]]


def assignment(*rows: Sequence[int], topic: str = "t") -> dict[TopicPartition, tuple[int, ...]]:
    """Partitions 0, 1, ... of one topic."""
    return {TopicPartition(topic, index): tuple(row) for index, row in enumerate(rows)}


def brokers(*ids: int, racks: Sequence[str] | None = None) -> list[BrokerPlace]:
    """Brokers without racks, or with one each."""
    return [BrokerPlace(b, racks[at] if racks else None) for at, b in enumerate(ids)]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[TopicPartition, tuple[int, ...]], list[BrokerPlace]]:
    """A current assignment and the target brokers: some are new, some old ones are missing.

    With racks, each has as many brokers as the others.
    """
    racks = draw(st.sampled_from([0, 1, 2, 3]))
    size = draw(st.integers(1, 3)) * racks if racks else draw(st.integers(1, 7))
    ids = draw(st.permutations(range(10, 10 + size)))
    known = [BrokerPlace(b, f"r{at % racks}" if racks else None) for at, b in enumerate(ids)]
    holders = [*ids, *range(draw(st.integers(0, 3)))]
    factor_max = min(size, 4)
    found = {}
    for index in range(draw(st.integers(1, 24))):
        factor = draw(st.integers(1, factor_max))
        order = draw(st.permutations(holders))
        found[TopicPartition(draw(st.sampled_from("ab")), index)] = tuple(order[:factor])
    return found, known


def loads(plan: Assignment, known: Iterable[BrokerPlace]) -> dict[int, int]:
    """Number of replicas by broker."""
    counted = Counter(b for replicas in plan.values() for b in replicas)
    return {broker.broker_id: counted[broker.broker_id] for broker in known}


def moved_replicas(before: Assignment, after: Assignment) -> int:
    """Number of replicas that must be copied."""
    return sum(len(set(after[tp]) - set(before[tp])) for tp in after)


def fewest_moved_replicas(current: Assignment, ids: Sequence[int]) -> int:
    """The least number of copies with which a plan without racks balances replicas over brokers.

    It is a minimum-cost flow from partitions to brokers, computed path by path (Bellman-Ford):
    slow, and independent of the planner's algorithm.
    """
    total = sum(map(len, current.values()))
    share, more = divmod(total, len(ids))
    numbers = count()
    node = {name: next(numbers) for name in ("source", "sink", "spare", *current, *ids)}
    edges: list[list[int]] = []  # from, to, room, cost; the way back is the next one

    def link(start: int, end: int, room: int, cost: int) -> None:
        edges.extend(([start, end, room, cost], [end, start, 0, -cost]))

    for tp, replicas in current.items():
        link(node["source"], node[tp], len(replicas), 0)
        for broker_id in ids:
            link(node[tp], node[broker_id], 1, 0 if broker_id in replicas else 1)
    must = 1000  # every broker gets its share before one gets more
    for broker_id in ids:
        link(node[broker_id], node["sink"], share, -must)
        link(node[broker_id], node["spare"], 1, 0)
    link(node["spare"], node["sink"], more, 0)
    cost = 0
    for _ in range(total):
        cost += _augment(edges, node["source"], node["sink"])
    return cost + must * share * len(ids)


def _augment(edges: list[list[int]], source: int, sink: int) -> int:
    """Send one unit along the cheapest path. Returns its cost."""
    distance, came_by = {source: 0}, {}
    changed = True
    while changed:
        changed = False
        for at, (start, end, room, cost) in enumerate(edges):
            far = distance.get(start)
            if room and far is not None and far + cost < distance.get(end, 1 << 30):
                distance[end], came_by[end], changed = far + cost, at, True
    here = sink
    while here != source:
        at = came_by[here]
        edges[at][2] -= 1
        edges[at ^ 1][2] += 1
        here = edges[at][0]
    return distance[sink]
