"""The cleaner's table."""

from __future__ import annotations

import random

import pytest

from kafkapy.storage.offset_map import SLOT_BYTES, OffsetMap


def test_it_is_a_map_up_to_its_capacity() -> None:
    chance = random.Random(1)
    table = OffsetMap(1000 * SLOT_BYTES)
    model: dict[bytes, int] = {}
    while len(model) < table.capacity:
        key = b"%d" % chance.randrange(5000)
        model[key] = len(model) + chance.randrange(10**12)
        table.put(key, model[key])
    assert (table.size, table.capacity, table.is_full) == (900, 900, True)
    assert {key: table.get(key) for key in model} == model
    assert all(table.get(b"%d" % i) == -1 for i in range(5000, 6000))
    known = next(iter(model))
    table.put(known, 77)
    assert table.get(known) == 77
    with pytest.raises(AssertionError, match="full"):
        table.put(b"one more", 1)


def test_the_smallest_table_still_ends_its_searches() -> None:
    table = OffsetMap(0)
    table.put(b"", 0)
    assert table.is_full
    assert (table.get(b""), table.get(b"x")) == (0, -1)
