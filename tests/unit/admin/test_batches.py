"""Batches of a sequence."""

from kafkapy.admin.batches import batches


def test_batches() -> None:
    assert list(batches([1, 2, 3], 2)) == [[1, 2], [3]]
    assert list(batches([], 2)) == []
