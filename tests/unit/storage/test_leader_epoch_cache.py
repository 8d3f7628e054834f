"""Leader epochs and where they end."""

from __future__ import annotations

import pytest

from kafkapy.storage.leader_epoch_cache import EpochEntries, LeaderEpochCache


class Written:
    """Stands in for the checkpoint file; keeps the last entries written."""

    def __init__(self) -> None:
        self.last: EpochEntries | None = None

    def __call__(self, entries: EpochEntries) -> None:
        self.last = entries


def cache(*entries: tuple[int, int]) -> tuple[LeaderEpochCache, Written]:
    written = Written()
    return LeaderEpochCache(list(entries), written), written


@pytest.mark.parametrize(
    ("before", "epoch", "offset", "after"),
    [
        ([], 0, 0, [(0, 0)]),
        ([(1, 0)], 2, 10, [(1, 0), (2, 10)]),
        ([(1, 0)], 1, 10, None),
        ([(1, 5)], 1, 3, [(1, 3)]),
        ([(1, 0), (2, 10)], 3, 10, [(1, 0), (3, 10)]),
        ([(1, 0), (2, 10), (4, 20)], 3, 15, [(1, 0), (2, 10), (3, 15)]),
        ([(1, 0), (2, 10), (4, 20)], 5, 5, [(1, 0), (5, 5)]),
        ([(1, 0)], -1, 10, None),
    ],
)
def test_assign(before: EpochEntries, epoch: int, offset: int, after: EpochEntries | None) -> None:
    made, written = cache(*before)
    assert made.assign(epoch, offset) == (after is not None)
    assert written.last == after
    assert made.entries() == (before if after is None else after)
    assert made.latest == (made.entries()[-1][0] if made.entries() else -1)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 5)),
        (1, (1, 10)),
        (2, (1, 10)),
        (3, (3, 30)),
        (6, (6, 77)),
        (7, (-1, -1)),
    ],
)
def test_end_offset_for(asked: int, answer: tuple[int, int]) -> None:
    made, _ = cache((1, 5), (3, 10), (6, 30))
    assert made.end_offset_for(asked, 77) == answer


def test_an_empty_cache_knows_no_end() -> None:
    made, _ = cache()
    assert made.end_offset_for(0, 77) == (-1, -1)
    assert made.epoch_for_offset(3) == -1


def test_epoch_for_offset() -> None:
    made, _ = cache((1, 5), (3, 10))
    assert [made.epoch_for_offset(o) for o in (4, 5, 9, 10, 99)] == [-1, 1, 1, 3, 3]


def test_truncate_from_end() -> None:
    made, written = cache((1, 0), (2, 10), (3, 20))
    made.truncate_from_end(21)
    assert written.last is None
    made.truncate_from_end(10)
    assert (written.last, made.latest) == ([(1, 0)], 1)
    made.truncate_from_end(0)
    assert (made.entries(), made.latest) == ([], -1)


def test_truncate_from_start() -> None:
    made, written = cache((1, 0), (2, 10), (3, 20))
    made.truncate_from_start(0)
    assert written.last is None
    made.truncate_from_start(15)
    assert written.last == [(2, 15), (3, 20)]
    made.truncate_from_start(50)
    assert made.entries() == [(3, 50)]


def test_clear() -> None:
    made, written = cache((1, 0))
    made.clear()
    assert (written.last, made.latest) == ([], -1)
