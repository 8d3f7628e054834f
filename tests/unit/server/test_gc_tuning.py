"""A broker's full collections look once at what lives long, and that leaves no cycle behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from kafkapy.common.cluster_state import StopReplicaCommand, StopReplicaPartition
from kafkapy.server.gc_tuning import freeze_survivors
from tests.harness.cores.hot_path import PRODUCE, Client, fetch, produce
from tests.harness.cores.server_parts import Parts
from tests.harness.cores.znodes import run
from tests.harness.plugins.closing import closing


@pytest.fixture(scope="module")
def process() -> Iterator[Executor]:
    """A process that has nothing else in use: in one that has run thousands of tests full
    collections take seconds."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


def test_what_was_seen_once_is_not_looked_at_again(process: Executor) -> None:
    process.submit(alone, see_once).result()


def test_a_cycle_that_dies_young_is_still_found(process: Executor) -> None:
    process.submit(alone, let_die_young).result()


def test_a_cycle_that_dies_old_is_found_within_an_hour(process: Executor) -> None:
    process.submit(alone, let_die_old).result()


def test_what_lives_long_is_taken_apart_when_it_ends(process: Executor, tmp_path: Path) -> None:
    """Nothing frees a cycle that was frozen: partitions and connections must leave none."""
    process.submit(alone, take_apart, tmp_path).result()


def alone(test: Callable[..., None], *arguments: Path) -> None:
    """Run a test, and leave the collector as it was."""
    callbacks = list(gc.callbacks)
    try:
        with closing():
            test(*arguments)
    finally:
        gc.callbacks[:] = callbacks
        gc.set_debug(0)
        gc.garbage.clear()
        gc.collect()


class Link:
    """Something that can be in a cycle, and be watched."""

    def __init__(self) -> None:
        self.to: Link | None = None


def see_once() -> None:
    freeze_survivors()
    held = [[number] for number in range(1000)]
    gc.collect()
    assert gc.get_freeze_count() > len(held)
    tracked = {id(one) for one in gc.get_objects()}
    assert not any(id(one) in tracked for one in held)


def let_die_young() -> None:
    freeze_survivors()
    gc.collect()
    one, other = Link(), Link()
    one.to, other.to = other, one
    seen = weakref.ref(one)
    del one, other
    gc.collect()
    assert seen() is None


def let_die_old() -> None:
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


def take_apart(tmp_path: Path) -> None:
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
