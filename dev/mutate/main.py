"""Runs mutants on the simulator's default plans until they are caught (`scripts/mutate`).

The exit status is 1 if one survived.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from dev.mutate import page
from dev.mutate.hunt import Result, hunt
from dev.mutate.mutant import Mutant, load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run mutants. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, metavar="N", help="at most (500)")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="N", help="the first")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--write", action="store_true", help="into docs/evidence/mutants.md")
    given = parser.parse_args(arguments)
    mutants = load()
    unknown = set(given.only) - {mutant.name for mutant in mutants}
    if unknown:
        parser.error(f"there is no mutant {', '.join(sorted(unknown))}")
    if given.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0
    chosen = [
        mutant
        for mutant in mutants
        if (mutant.name in given.only if given.only else not mutant.equivalent)
    ]
    results = _run(chosen, given.first, given.seeds, given.jobs)
    if given.write:
        page.write(results, mutants)
    survivors = [result.mutant.name for result in results if not result.is_caught]
    print(f"{len(results) - len(survivors)} of {len(results)} caught")
    if survivors:
        print(f"survivors: {', '.join(survivors)}")
    return 1 if survivors else 0


def _run(mutants: Sequence[Mutant], first: int, seeds: int, jobs: int) -> list[Result]:
    """Results in the order of the mutants, each printed when it is there."""
    results = []
    with ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(partial(hunt, first=first, count=seeds), mutants):
            print(_line(result), flush=True)
            results.append(result)
    return results


def _line(result: Result) -> str:
    caught = f"{result.seeds:>4}  {result.checker}" if result.is_caught else "   -  survives"
    return f"{result.mutant.name:<50} {caught:<28} {result.seconds:6.0f} s"


if __name__ == "__main__":
    sys.exit(main())
