"""Pictures for README.md and docs/, as SVG files that stay the same while their data does.

scripts/pictures                 draw what comes from the code, and from committed data
scripts/pictures --check         fail, naming the files, if one of those is out of date
scripts/pictures --record        first run the demo session again (docs/pictures/demo.cast)
scripts/pictures --spark         first run the Spark job again (docs/pictures/log-levels.txt)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from dev.docs import layered_graph, recording
from dev.docs.svg import BLUE, GREEN, WIDTH, Bar, Box, Drawing, bars
from dev.report import ROOT
from kafkapy.controller import partition_states, replica_states
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.replica_states import ReplicaState
from kafkapy.coordinator.groups import group
from kafkapy.coordinator.groups.group import GroupState
from kafkapy.coordinator.transactions import state as transactions
from kafkapy.coordinator.transactions.state import TransactionState
from tests import test_layers as layers

DIRECTORY = ROOT / "docs" / "pictures"
DEMO, LEVELS = "demo.cast", "log-levels.txt"


def packages() -> str:
    """The packages and what each may import: the table of tests/test_layers.py."""
    late = {(a, b) for a, targets in layers.MAY_IMPORT_LATE.items() for b in targets}
    edges = {name: set(targets) for name, targets in layers.MAY_IMPORT.items() if name}
    for a, b in late:
        edges[a].add(b)
    fill = {name: GREEN if name in layers.PURE else BLUE for name in edges}
    drawing = layered_graph.draw(edges, "The packages of kafkapy", fill, dashed=late)
    drawing.legend([(GREEN, "pure: decides, touches nothing"), (BLUE, "shell: sockets, loop, CLI")])
    drawing.caption(
        "A package imports only packages below it. Arrows that a longer path implies are left out.",
        "Dashed: imported only by the function that needs it.",
    )
    return str(drawing)


def server_subpackages() -> str:
    """The server's subpackages and their imports, from the code."""
    edges: dict[str, set[str]] = {subpackage: set() for subpackage in layers.ROOMS}
    for path, targets in layers.graph().items():
        if (subpackage := layers.room_of(path)) in edges:
            edges[subpackage] |= {layers.room_of(target) for target in targets} & edges.keys() - {
                subpackage
            }
    fill = dict.fromkeys(edges, BLUE)
    drawing = layered_graph.draw(edges, "The rooms of kafkapy/server", fill)
    drawing.caption(
        "A room imports only rooms below it. Arrows that a longer path implies are left out.",
        "root: `broker`, which builds the rest, and `process`, which runs it.",
    )
    return str(drawing)


class Machine(NamedTuple):
    """One state machine: the table of the code, and where each state is drawn (column, row)."""

    title: str
    previous: Mapping[str, set[str]]
    places: Mapping[str, tuple[float, float]]


def machine_of(
    title: str,
    previous: Mapping[Any, Collection[Any]],
    places: Mapping[Any, tuple[float, float]],
    name: str = "value",
) -> Machine:
    """The machine of a table of previous states; `name` is the attribute with Kafka's name."""
    name_of = attrgetter(name)
    table = {name_of(state): set(map(name_of, befores)) for state, befores in previous.items()}
    return Machine(title, table, {name_of(state): at for state, at in places.items()})


def partitions() -> Machine:
    s = PartitionState
    places = {s.NON_EXISTENT: (0, 0), s.NEW: (1, 0), s.ONLINE: (2, 0), s.OFFLINE: (1, 1)}
    return machine_of("Partition", partition_states.VALID_PREVIOUS_STATES, places)


def replicas() -> Machine:
    s = ReplicaState
    places = {
        s.NON_EXISTENT: (0, 0),
        s.NEW: (1, 0),
        s.ONLINE: (2, 0),
        s.OFFLINE: (1, 1),
        s.DELETION_INELIGIBLE: (2, 1),
        s.DELETION_STARTED: (1, 2),
        s.DELETION_SUCCESSFUL: (0, 2),
    }
    return machine_of("Replica", replica_states.VALID_PREVIOUS_STATES, places)


def groups() -> Machine:
    s = GroupState
    places = {
        s.EMPTY: (0, 0),
        s.PREPARING_REBALANCE: (1, 0),
        s.COMPLETING_REBALANCE: (2, 0),
        s.DEAD: (1, 1),
        s.STABLE: (2, 1),
    }
    return machine_of("Consumer group", group.VALID_PREVIOUS_STATES, places)


def transaction_ids() -> Machine:
    s = TransactionState
    places = {
        s.DEAD: (0, 1),
        s.COMPLETE_COMMIT: (1, 0),
        s.EMPTY: (1, 1),
        s.COMPLETE_ABORT: (1, 2),
        s.PREPARE_COMMIT: (2, 0),
        s.ONGOING: (2, 1),
        s.PREPARE_ABORT: (2, 2),
        s.PREPARE_EPOCH_FENCE: (3, 1),
    }
    return machine_of("Transaction", transactions.VALID_PREVIOUS_STATES, places, "text")


def state_machines(title: str, machines: Sequence[Machine]) -> str:
    """State machines below each other."""
    drawing = Drawing(title)
    for machine in machines:
        top = drawing.heading(machine.title) + 30
        columns = 1 + max(column for column, _ in machine.places.values())
        boxes = {}
        for name in machine.previous:
            column, row = machine.places[name]
            x = WIDTH * (column + 0.5) / columns
            boxes[name] = Box(x, top + 95 * row, max(7.6 * len(name) + 20, 90), 30)
            drawing.box(boxes[name], name)
        for name, befores in machine.previous.items():
            for before in sorted(befores):
                both = before != name and name in machine.previous[before]
                drawing.transition(boxes[before], boxes[name], both, boxes.values())
    return str(drawing)


def controller_states() -> str:
    """The states of partitions and replicas."""
    return state_machines("States in the controller", [partitions(), replicas()])


def coordinator_states() -> str:
    """The states of consumer groups and transactions."""
    return state_machines("States in the coordinators", [groups(), transaction_ids()])


def log_levels() -> str:
    """The result of a real Spark job."""
    rows = recording.log_levels(DIRECTORY / LEVELS)
    return bars(
        "Log lines by level, counted by kafkapy spark-submit --sql",
        [Bar(level, count, f"{count:,}") for level, count in rows],
    )


def drawings() -> dict[Path, str]:
    """Every picture that comes from the code or from committed data."""
    return {
        DIRECTORY / "packages.svg": packages(),
        DIRECTORY / "rooms.svg": server_subpackages(),
        DIRECTORY / "controller-states.svg": controller_states(),
        DIRECTORY / "coordinator-states.svg": coordinator_states(),
        DIRECTORY / "demo.svg": recording.rendered(DIRECTORY / DEMO),
        DIRECTORY / "log-levels.svg": log_levels(),
    }


def stale() -> dict[Path, str]:
    """The drawings whose files are missing or out of date."""
    return {
        path: text
        for path, text in drawings().items()
        if not path.exists() or path.read_text() != text
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/pictures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for flag in ("check", "record", "spark"):
        parser.add_argument(f"--{flag}", action="store_true")
    asked = parser.parse_args()
    DIRECTORY.mkdir(exist_ok=True)
    if asked.record:
        recording.record(DIRECTORY / DEMO)
    if asked.spark:
        recording.run_spark_job(DIRECTORY / LEVELS)
    found = stale()
    for path, text in found.items():
        name = path.relative_to(ROOT)
        print(f"{name} {'is out of date: run scripts/pictures' if asked.check else 'written'}")
        if not asked.check:
            path.write_text(text)
    return 1 if asked.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
