"""Notifications: read in their order, and deleted when they are old."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.zk.stores.change_notifications import CHANGE_EXPIRATION_MS, purge, sequences
from kafkapy.zk.zookeeper import CreateMode, NoNode, WatchEvent
from tests.harness.cores.znodes import run, server


def test_they_are_read_by_their_numbers_and_their_prefix() -> None:
    zk = server().connect()
    with pytest.raises(NoNode):
        run(sequences(zk, "/f", "c_"))
    seen: list[WatchEvent] = []
    run(zk.create("/f", b""))
    for path in ("/f/c_", "/f/other_", "/f/c_"):
        run(zk.create(path, b"", CreateMode.PERSISTENT_SEQUENTIAL))
    assert run(sequences(zk, "/f", "c_", seen.append)) == [0, 2]
    run(zk.create("/f/c_", b"", CreateMode.PERSISTENT_SEQUENTIAL))
    assert len(seen) == 1


def test_what_has_no_number_is_none() -> None:
    zk = server().connect()
    run(zk.create("/f", b""))
    run(zk.create("/f/c_", b"", CreateMode.PERSISTENT_SEQUENTIAL))
    for name in ("c_", "c_stray", "c_1_0", f"c_{'9' * 5000}", "c_-2147483648"):
        run(zk.create(f"/f/{name}", b""))
    assert run(sequences(zk, "/f", "c_")) == [-(2**31), 0]


def test_old_ones_go() -> None:
    zk = server().connect()
    path = run(zk.create("/c_", b"", CreateMode.PERSISTENT_SEQUENTIAL))
    made_ms = run(zk.get(path)).stat.ctime_ms
    run(purge(zk, [path, "/gone"], made_ms + CHANGE_EXPIRATION_MS))
    assert run(zk.exists(path)) is not None
    run(purge(zk, [path, "/gone"], made_ms + CHANGE_EXPIRATION_MS + 1))
    assert run(zk.exists(path)) is None


def test_after_each_of_many_changes_one_of_them_is_looked_at() -> None:
    """A change took 0.1 s of the event loop where 10,000 had come in 15 minutes."""
    zk = server().connect()
    made = [run(zk.create("/c_", b"", CreateMode.PERSISTENT_SEQUENTIAL)) for _ in range(50)]
    looked: list[str] = []
    exists = zk.exists

    def counting(path: str, *words: Any) -> Any:
        looked.append(path)
        return exists(path, *words)

    zk.exists = counting  # type: ignore[method-assign]
    run(purge(zk, made, run(zk.get(made[0])).stat.ctime_ms))
    assert looked == made[:1]
