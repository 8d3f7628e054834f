"""State batches: of two that have a record, the one that is further on."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from kafkapy.common.share_state import DeliveryState, StateBatch, combine_batches

STATES = [DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED]


def by_offset(batches: list[StateBatch], start: int) -> dict[int, tuple[int, DeliveryState]]:
    found: dict[int, tuple[int, DeliveryState]] = {}
    for batch in batches:
        for offset in range(max(batch.first, start), batch.last + 1):
            row = (batch.delivery_count, batch.state)
            found[offset] = max(row, found.get(offset, row))
    return found


def test_merged_batches_say_of_each_record_what_is_further_on() -> None:
    random = Random(1)
    for _ in range(300):
        batches = []
        for _ in range(random.randint(0, 8)):
            first = random.randint(0, 20)
            last = first + random.randint(0, 8)
            batches.append(StateBatch(first, last, random.choice(STATES), random.randint(1, 2)))
        start, split = random.randint(0, 10), random.randint(0, len(batches))
        known = combine_batches([], batches[:split], 0)
        found = combine_batches(known, batches[split:], start)
        assert by_offset(found, start) == by_offset(batches, start)
        for one, other in pairwise(found):
            assert one.last < other.first
            assert one.last + 1 < other.first or one[2:] != other[2:]
        assert not found or found[0].first >= start


def test_many_batches_are_merged_in_a_moment() -> None:
    batches = [StateBatch(n, n + 5, STATES[n % 3], n % 2) for n in range(0, 20_000, 2)]
    assert len(combine_batches(batches[::2], batches[1::2], 0)) <= 2 * len(batches)
