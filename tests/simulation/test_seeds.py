"""Production brokers under faults drawn from seeds: every guarantee of `checkers` holds.

`scripts/simulate --seeds 20000` runs many more.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import randrange

import pytest

from tests.simulation.faults import KINDS
from tests.simulation.simulation import Outcome, simulate

SEEDS = (
    *(6, 13, 24, 27, 28, 68, 76, 77, 88, 110, 117, 122, 125, 128, 135),
    *(143, 146, 147, 156, 189, 195, 196, 197, 211, 215, 221, 224, 229, 248, 256, 285, 331, 333),
)
"""Seeds that together have every kind of fault and of client."""
FIRST_NEW_SEED = int(os.environ.get("KAFKAPY_FIRST_NEW_SEED") or randrange(10**9, 2 * 10**9))
"""The first new seed. `scripts/test` draws and prints it."""
NEW_SEEDS = 4
CHUNK_SIZE = 2
PROCESSES = 2


def run(seeds: Iterable[int]) -> list[Outcome]:
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        return list(pool.map(simulate, seeds, chunksize=CHUNK_SIZE))


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return run(SEEDS)


def test_every_promise_is_kept(outcomes: list[Outcome]) -> None:
    broken = [outcome.report() for outcome in outcomes if outcome.violation]
    assert not broken, "\n\n".join(broken[:3])


def test_every_promise_is_kept_in_seeds_that_nobody_has_run() -> None:
    test_every_promise_is_kept(run(range(FIRST_NEW_SEED, FIRST_NEW_SEED + NEW_SEEDS)))


def test_the_seeds_are_no_idle_ones(outcomes: list[Outcome]) -> None:
    """Every kind of fault happened, and clients were served throughout."""
    counts: Counter[str] = sum((outcome.counts for outcome in outcomes), Counter())
    few = {kind: counts[kind] for kind in FAULT_KINDS if not counts[kind]}
    assert not few, f"hardly ever: {few}"
    assert counts["records acknowledged by all in sync"] > 100 * len(SEEDS)
    assert counts["offsets committed"] > 5 * len(SEEDS)
    assert counts["transactions committed"] > len(SEEDS)
    assert counts["records copied exactly once"] > len(SEEDS)
    for rare in RARE:
        assert counts[rare] > len(SEEDS) / 10, rare


def test_losses_are_rare_and_have_a_reason(outcomes: list[Outcome]) -> None:
    """Only a minority's disk is ever torn, so most seeds must lose no record."""
    lossy = [outcome for outcome in outcomes if outcome.losses]
    assert len(lossy) < len(SEEDS) / 4
    for outcome in lossy:
        for reason in outcome.losses.values():
            assert reason.partition(":")[0] in ALLOWED, reason


ALLOWED = (
    "an unclean election",
    "the last in-sync replica's disk was torn",
    "no controller saw that a torn replica was gone",
    "a torn replica led on in its epoch, which now has two histories",
    "all brokers lost power at once",
)
RARE = (
    "transactions aborted in a hurry",
    "transactional producers that began anew",
    "stale commits",
    "deletions of records confirmed",
    "keys of compacted topics",
    "consumers assigned",
    "records shared",
    "sharers that ended",
    "static members restarted",
    "fetches answered by followers",
    "batches acknowledged in a pipeline",
    "segments deleted by retention",
    "moves to another directory confirmed",
)
FAULT_KINDS = [kind for kind in KINDS if kind != "kill at a point"]  # counted by its points
