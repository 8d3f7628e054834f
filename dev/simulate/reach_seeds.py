"""Runs seeds in the copy of the tree that `reach` makes, and prints the counts as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from dev.simulate.reached import COUNTS
from tests.simulation.faults import KINDS
from tests.simulation.simulation import simulate

_KILLED = "killed when "


def main(arguments: Sequence[str]) -> None:
    """Print one line: [kind, name, count] of all that was reached."""
    first, seeds = map(int, arguments)
    for seed in range(first, first + seeds):
        outcome = simulate(seed)
        if outcome.violation:
            print(f"seed {seed}: {outcome.violation}", file=sys.stderr, flush=True)
        for name, n in outcome.counts.items():
            if name in KINDS:
                COUNTS["fault", name] += n
            elif name.startswith(_KILLED):
                COUNTS["kill point", name.removeprefix(_KILLED)] += n
    print(json.dumps([(kind, name, n) for (kind, name), n in COUNTS.items()]))


if __name__ == "__main__":
    main(sys.argv[1:])
