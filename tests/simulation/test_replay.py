"""A seed is deterministic: it has the same trace in every process, whatever its hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from kafkapy.common.errors import LogDirFailure
from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node
from tests.simulation.simulation import simulate

ROOT = Path(__file__).parents[2]
SEEDS = (7, 69)
"""The first seeds of test_mutants.py."""
PROGRAM = "import sys; from tests.simulation.simulation import simulate;" \
    " print(*(simulate(int(seed)).digest for seed in sys.argv[1:]))"  # fmt: skip


def traces_of_another_process() -> list[str]:
    """The traces of a process with another hash seed."""
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", PROGRAM, *map(str, SEEDS)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True,
                          check=True)  # fmt: skip
    return done.stdout.split()


def test_a_seed_replays_to_the_same_trace_under_another_hash_seed() -> None:
    outcomes = [simulate(seed) for seed in SEEDS]
    assert not [outcome.report() for outcome in outcomes if outcome.violation]
    digests = [outcome.digest for outcome in outcomes]
    assert len(set(digests)) == len(SEEDS), "different seeds are different courses"
    assert traces_of_another_process() == digests


def test_a_seed_that_is_watched_takes_the_same_course() -> None:
    """With an echo, the brokers' log lines are formatted, and an error in one is a fault."""
    lines: list[str] = []
    watched = simulate(SEEDS[0], echo=lines.append)
    assert (watched.violation, watched.digest) == ("", simulate(SEEDS[0]).digest)
    assert any("1 successfully elected as the controller. Epoch incr" in line for line in lines)


class Objector(Checker):
    """Raises a violation at the third step of any broker."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.steps = 0

    def on_step(self, node: Node) -> None:
        self.steps += 1
        if self.steps == 3:
            self.violated(f"broker {node.broker_id} moved")


def test_a_failing_seed_says_what_broke_and_how_to_see_it_again() -> None:
    outcome = simulate(5, checkers=[Objector])
    lines = outcome.report().splitlines()
    assert lines[0].startswith("seed 5: Objector: broker ")
    assert "starts" in lines[1], "the trace's tail says what led to it"
    assert lines[-1] == f"trace {outcome.digest}; see it again: scripts/simulate 5"


class Failing(Objector):
    """Raises an exception whose class cannot be sent to another process."""

    def violated(self, message: str) -> NoReturn:
        raise LogDirFailure("/data/one", message)


def test_a_seed_whose_checker_fails_is_named() -> None:
    outcome = simulate(5, checkers=[Failing])
    lines = outcome.report().splitlines()
    assert lines[0].startswith("seed 5: the simulator failed: LogDirFailure: broker ")
    assert any(line.endswith("in violated") for line in lines), "where it failed"
