"""The cleaner's map."""

from __future__ import annotations

import random

from kafkapy.storage.offset_map import ENTRY_BYTES, OffsetMap


def test_it_knows_the_last_offset_of_each_key() -> None:
    chance = random.Random(1)
    table = OffsetMap(10**6)
    model: dict[bytes, int] = {}
    # Short keys, and long ones of which only the sum is kept.
    keys = [b"%d" % n for n in range(300)] + [b"%d" % n * 30 for n in range(300)]
    for base in range(0, 4000, 40):
        batch = [chance.choice(keys) for _ in range(40)]
        offsets = list(range(base, base + 40))
        table.put(batch, offsets)
        model.update(zip(batch, offsets, strict=True))
    assert len(table) == len(model)
    known = list(model)
    assert table.supersedes(known, [model[key] for key in known]) == [False] * len(model)
    assert table.supersedes(known, [model[key] - 1 for key in known]) == [True] * len(model)
    assert table.supersedes([b"unknown", None], [0, 10**9]) == [False, True]


def test_a_key_is_not_mistaken_for_the_sum_of_another() -> None:
    table = OffsetMap(10**6)
    long = b"k" * 100
    table.put([long], [7])
    assert table.supersedes([long, long + b"k", long[:48]], [6, 6, 6]) == [True, False, False]


def test_rows_without_a_key_are_not_in_it() -> None:
    table = OffsetMap(10**6)
    table.put([None, b"a", None, b"k" * 100], [1, 2, 3, 4])
    table.put([None], [5])
    assert len(table) == 2
    assert table.supersedes([b"a", b"k" * 100], [1, 3]) == [True, True]


def test_room_is_given_by_the_memory_but_always_for_the_first_batch() -> None:
    table = OffsetMap(10 * ENTRY_BYTES)
    assert table.has_room(11)
    table.put([b"a", b"b"], [0, 1])
    assert (table.capacity, table.has_room(8), table.has_room(9)) == (10, True, False)


def test_a_batch_is_superseded_when_all_its_keys_came_again() -> None:
    table = OffsetMap(10**6)
    table.put_batch(0, [b"a", None, b"b"], [0, 1, 2])
    table.put_batch(3, [b"a"], [3])
    table.put_batch(4, [b"c", b"d"], [4, 5])
    assert not table.is_superseded(0, 2)
    table.put_batch(6, [b"b"], [6])
    table.put([b"d"], [7])
    spans = [(0, 2), (3, 3), (4, 5), (6, 6)]
    assert [table.is_superseded(*span) for span in spans] == [True, False, False, False]


def test_a_batch_that_was_not_taken_whole_is_never_superseded() -> None:
    """Part of it may be older than the map, or belong to nobody's commit."""
    table = OffsetMap(10**6)
    table.put([b"a"], [1])
    table.put_batch(2, [b"a"], [2])
    assert not table.is_superseded(0, 1)
    assert not table.is_superseded(10, 11)
