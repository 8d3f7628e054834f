"""Reach of the simulator: how often seeds reach the places that matter (`--reach`).

Calls that count are inserted at the places of `places.toml`, into a copy of the tree; `reach_seeds`
runs in this copy.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple

from dev.mutate.hunt import copy_tree
from dev.mutate.mutant import Misfit
from dev.report import ROOT, kafkapy_version, table, today
from kafkapy.controller import partition_states, replica_states
from kafkapy.coordinator.groups import group
from kafkapy.coordinator.groups.consumer.records import MemberState
from kafkapy.coordinator.transactions import state as transactions
from tests.simulation.faults import KINDS
from tests.simulation.kill_points import KILL_POINTS

PAGE: Final = ROOT / "docs/evidence/simulation-reach.md"
_PLACES: Final = Path(__file__).parent / "places.toml"
_SEEDS_PER_PROCESS: Final = 25
_INTRODUCTION: Final = """\
# Reach of the simulator

How often the seeds of the [simulator](simulation.md) came to the places that matter: transitions of
the state machines, answers, elections, truncations, branches of recovery, faults, and the points at
which a process is killed. Written by `scripts/simulate --reach --write`, which fails if one of them
was never reached. The places are in `dev/simulate/places.toml`.
"""
_UNREACHABLE: Final[Mapping[tuple[str, str], str]] = {
    ("state of a transaction", "PREPARE_EPOCH_FENCE to PREPARE_ABORT"): (
        "the fence is only pending: the abort begins in the state ONGOING"
    ),
    ("state of a classic group", "Dead to Dead"): (
        "a group leaves the registry in the step in which it becomes Dead: no later call finds it"
    ),
    ("error code", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"): (
        "the high watermark moves only while enough replicas are in sync (KIP-966), and answers"
        " what waits in the same step; between the slices of a request of many partitions the ISR"
        " may shrink: tests/unit/replication/test_delayed_produce.py"
    ),
    ("truncation", "where two histories of one epoch part"): (
        "our controller elects anew where a leader restarted; under Apache Kafka's one may lead on"
        " in its epoch: tests/unit/replication/test_follower_fetcher.py"
    ),
}
"""The reasons why some places are not reached, by kind and name."""


class Place(NamedTuple):
    """A call that counts, before the last line of `at`."""

    kind: str
    name: str
    file: str
    at: str
    call: str = ""

    def insert(self, text: str) -> str:
        """The text of the file with the call. Raises Misfit."""
        if text.count(self.at) != 1:
            raise Misfit(f"{self.kind} {self.name}: found {text.count(self.at)} times")
        line = text.index(self.at) + self.at.rfind("\n") + 1
        indent = " " * (len(text[line:]) - len(text[line:].lstrip(" ")))
        call = self.call or f"note({self.kind!r}, f{self.name!r})"
        module = "__import__('dev.simulate.reached', fromlist=['note'])"
        return f"{text[:line]}{indent}{module}.{call}\n{text[line:]}"


def load() -> tuple[list[Place], list[str]]:
    """The places, and the error codes that must be met."""
    found = tomllib.loads(_PLACES.read_text())
    return [Place(**fields) for fields in found["place"]], found["errors"]["names"]


def expected() -> dict[tuple[str, str], None]:
    """Everything that must be reached, by kind and name."""
    places, errors = load()
    names = [(p.kind, p.name) for p in places if p.name and "{" not in p.name]
    names += _transitions("state of a replica", replica_states.VALID_PREVIOUS_STATES)
    names += [
        ("state of a partition", f"{before.value} to OnlinePartition")
        for before in sorted(
            partition_states.VALID_PREVIOUS_STATES[partition_states.PartitionState.ONLINE],
            key=lambda s: s.value,
        )
    ]
    names += _transitions("state of a classic group", group.VALID_PREVIOUS_STATES)
    names += _transitions(
        "state of a transaction", transactions.VALID_PREVIOUS_STATES, by_name=True
    )
    names += [
        ("state of a consumer group's member", f"{before.name} to {after.name}")
        for before in MemberState
        for after in MemberState
    ]
    names += [("error code", name) for name in errors]
    names += [("fault", name) for name in KINDS if name != "kill at a point"]
    names += [("kill point", name) for name in KILL_POINTS]
    return {each: None for each in names if each not in _UNREACHABLE}


def _transitions(
    kind: str, table_: Mapping[Any, Any], by_name: bool = False
) -> list[tuple[str, str]]:
    def text(state: Enum) -> str:
        return state.name if by_name else str(state.value)

    return [
        (kind, f"{text(before)} to {text(after)}")
        for after, befores in table_.items()
        for before in sorted(befores, key=text)
    ]


def count(first: int, seeds: int, jobs: int) -> Counter[tuple[str, str]]:
    """Run seeds in a copy of the tree with the calls. Raises Misfit."""
    with tempfile.TemporaryDirectory(prefix="kafkapy-reach-") as folder:
        copy = Path(folder)
        copy_tree(copy)
        for place in load()[0]:
            path = copy / place.file
            path.write_text(place.insert(path.read_text()))
        starts = range(first, first + seeds, _SEEDS_PER_PROCESS)

        def run(start: int) -> Counter[tuple[str, str]]:
            some = min(_SEEDS_PER_PROCESS, first + seeds - start)
            command = [sys.executable, "-m", "dev.simulate.reach_seeds", str(start), str(some)]
            done = subprocess.run(command, cwd=copy, stdout=subprocess.PIPE, text=True, check=True)
            return Counter({(kind, name): n for kind, name, n in json.loads(done.stdout)})

        with ThreadPoolExecutor(jobs) as pool:
            return sum(pool.map(run, starts), Counter())


def report(first: int, seeds: int, jobs: int, writes: bool) -> int:
    """Print the counts, or write the page. Returns the exit status."""
    counts = count(first, seeds, jobs)
    wanted = expected()
    page = _page(counts, wanted, first, seeds)
    if writes:
        PAGE.write_text(page)
    else:
        print(page)
    missing = [f"{kind}: {name}" for kind, name in wanted if not counts[kind, name]]
    for line in missing:
        print(f"never reached: {line}", file=sys.stderr)
    return 1 if missing else 0


def _page(
    counts: Counter[tuple[str, str]],
    wanted: Mapping[tuple[str, str], None],
    first: int,
    seeds: int,
) -> str:
    parts = [_INTRODUCTION]
    parts.append(f"Seeds {first} to {first + seeds - 1}, {today()}, {kafkapy_version()}.")
    for kind in dict.fromkeys([kind for kind, _ in wanted]):
        names = [name for of, name in {**wanted, **counts} if of == kind]
        rows = [(name, f"{counts[kind, name]:,}") for name in dict.fromkeys(names)]
        parts.append(f"## {kind.capitalize()}\n\n" + table((kind, "times"), rows))
    if _UNREACHABLE:
        rows = [(f"{kind}: {name}", why) for (kind, name), why in _UNREACHABLE.items()]
        parts.append("## Not to be reached\n\n" + table(("what", "why"), rows))
    return "\n\n".join(part.strip() for part in parts) + "\n"
