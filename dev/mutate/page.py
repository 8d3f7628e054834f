"""The page of mutants: the effect of each, the number of seeds until it was caught, the check."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from dev.mutate.hunt import Result
from dev.mutate.mutant import Mutant
from dev.report import ROOT, kafkapy_version, table, today, wrapped

PAGE: Final = ROOT / "docs/evidence/mutants.md"
SURVIVES: Final = "survives"
_HEAD: Final = ("mutant", "users lose", "seeds", "caught by")
_INTRODUCTION: Final = """\
# Mutants

A simulator that finds nothing proves something only if it can find things. `scripts/mutate` breaks
production code on purpose, one rule at a time, in a copy of the tree, and runs the plans that seeds
draw until a check of the [simulator](simulation.md) objects. This page is written by
`scripts/mutate --write`; a run of some mutants replaces their rows.

```sh
scripts/mutate                          # all of them, up to 500 seeds each
scripts/mutate --only min_insync_replicas_is_1 --seeds 50
scripts/mutate --list                   # names only
```

The edits are in `dev/mutate/mutants/`: name, file, old and new text, and what users lose. One whose
old text is no longer in the code fails a unit test. One that nobody can see says why in its entry,
and is not run. One with `tests` in its entry breaks code that seeds rarely reach: these tests are
run instead, and no seed. "uncaught" in the last column means an exception or an assertion of
production code; `hangs`, that a seed does not end.
"""


def write(results: Sequence[Result], mutants: Sequence[Mutant], path: Path = PAGE) -> None:
    """Write the results to the page; rows of other mutants that still exist stay."""
    rows = _rows(path)
    rows |= {result.mutant.name: _cells(result) for result in results}
    judged = [mutant for mutant in mutants if not mutant.equivalent]
    kept = [(mutant, rows[mutant.name]) for mutant in judged if mutant.name in rows]
    caught = [int(cells[0]) for _, cells in kept if cells[1] != SURVIVES]
    seeds = [count for count in caught if count]
    score = wrapped(
        f"{len(caught)} of {len(kept)} mutants are caught"
        f" ({100 * len(caught) / max(len(kept), 1):.0f} %), {len(seeds)} of them by seeds, half of"
        f" these within {median(seeds) if seeds else 0:.0f}."
        f" {len(judged) - len(kept)} were not run."
        f" Last written {today()}, {kafkapy_version()}."
    )
    parts = [_INTRODUCTION, "## Score", score]
    for area in sorted({mutant.area for mutant, _ in kept}):
        lines = [
            (f"`{mutant.name}`", mutant.loses, *cells)
            for mutant, cells in kept
            if mutant.area == area
        ]
        parts += [f"## {area.capitalize()}", table(_HEAD, lines)]
    equals = [(f"`{m.name}`", m.equivalent) for m in mutants if m.equivalent]
    if equals:
        parts += ["## Equivalent", table(("mutant", "nobody can see it, because"), equals)]
    path.write_text("\n\n".join(part.strip() for part in parts) + "\n")


def _cells(result: Result) -> tuple[str, str]:
    caught_by = f"`{result.checker}`" if result.is_caught else SURVIVES
    return str(result.seeds), caught_by


def _rows(path: Path) -> dict[str, tuple[str, str]]:
    """Seeds and check by mutant, as the page has them."""
    text = path.read_text() if path.exists() else ""
    found = re.findall(r"^\| `(\w+)` \| .* \| (\d+) \| (.+) \|$", text, flags=re.MULTILINE)
    return {name: (seeds, caught_by) for name, seeds, caught_by in found}
