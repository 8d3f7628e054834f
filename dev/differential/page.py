"""docs/evidence/differential.md."""

from __future__ import annotations

import re
import textwrap
from typing import Final, NamedTuple

from dev.report import ROOT

PAGE: Final = ROOT / "docs" / "evidence" / "differential.md"
LINE: Final = 100


class Run(NamedTuple):
    """The size and the result of a run."""

    first_seed: int
    sequences: int
    operations: int
    differences: int
    known: int
    seconds: float = 0.0

    @property
    def summary(self) -> str:
        """One sentence about the run."""
        return (
            f"{self.sequences:,} sequences from seed {self.first_seed}, {self.operations:,}"
            f" operations on each broker: {self.differences} unknown differences, {self.known}"
            f" known ones; {self.seconds:.0f} s"
        )


def write_page(run: Run, place: str) -> None:
    """Replace a result on the page: `result`, or `groups`."""
    text = re.compile(rf"(?<=<!-- {place} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    summary = textwrap.fill(f"{run.summary}.", LINE, break_on_hyphens=False)
    PAGE.write_text(text.sub(f"{summary}\n", PAGE.read_text()))
