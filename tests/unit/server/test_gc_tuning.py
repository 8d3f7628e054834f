"""A broker's full collections look once at what lives long, and that leaves no cycle behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.cluster_state import StopReplicaCommand, StopReplicaPartition
from kafkapy.server.gc_tuning import freeze_survivors
from tests.support.hot_path import PRODUCE, Client, fetch, produce
from tests.support.server_parts import Parts
from tests.support.znodes import run


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The collector as it was before."""
    callbacks = list(gc.callbacks)
    yield
    gc.callbacks[:] = callbacks
    gc.set_debug(0)
    gc.garbage.clear()
    gc.collect()
    gc.freeze()  # as it was: tests/conftest.py


class Link:
    """Something that can be in a cycle, and be watched."""

    def __init__(self) -> None:
        self.to: Link | None = None


def test_what_was_seen_once_is_not_looked_at_again() -> None:
    freeze_survivors()
    held = [[number] for number in range(1000)]
    gc.collect()
    assert gc.get_freeze_count() > len(held)
    tracked = {id(one) for one in gc.get_objects()}
    assert not any(id(one) in tracked for one in held)


def test_a_cycle_that_dies_young_is_still_found() -> None:
    freeze_survivors()
    gc.collect()
    one, other = Link(), Link()
    one.to, other.to = other, one
    seen = weakref.ref(one)
    del one, other
    gc.collect()
    assert seen() is None


def test_a_cycle_that_dies_old_is_found_within_an_hour() -> None:
    now_s = [0.0]
    freeze_survivors(lambda: now_s[0])
    one, other = Link(), Link()
    one.to, other.to = other, one
    gc.collect()
    seen = weakref.ref(one)
    del one, other
    gc.collect()
    assert seen() is not None
    now_s[0] = 3600.0
    gc.collect()
    assert seen() is None


def test_what_lives_long_is_taken_apart_when_it_ends(tmp_path: Path) -> None:
    """Nothing frees a cycle that was frozen: partitions and connections must leave none."""
    parts = Parts(tmp_path)
    gc.collect()
    gc.disable()
    try:
        parts.lead()
        client = Client(parts)
        client.sends(PRODUCE, produce("t"), produce("t"))()
        client.fetches(fetch())
        client.sends(12, fetch(offset=2, max_wait_ms=60_000))()
        assert len(parts.replicas.fetch_purgatory) == 1
        client.connection.connection_lost(None)
        rows = [StopReplicaPartition("t", 0, 7, True)]
        run(parts.replicas.stop_replicas(StopReplicaCommand(1, 1, 1, rows)))
        assert not parts.replicas.partitions
        del client
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        names = Counter(type(one).__module__ + "." + type(one).__name__ for one in gc.garbage)
    finally:
        gc.enable()
    left = {name: count for name, count in names.items() if name.startswith("kafkapy.")}
    assert not left, f"cycles that only the collector could free: {left}"


def test_freed_memory_goes_back_to_the_system() -> None:
    """In a process of its own: what else was freed here would count too."""
    code = """
import re
from kafkapy.server.gc_tuning import return_free_memory

def resident_kb():
    return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1])

held = [bytes(4000) for _ in range(20_000)]
last = held.pop()
del held
before = resident_kb()
return_free_memory()
print(before - resident_kb())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 40_000
