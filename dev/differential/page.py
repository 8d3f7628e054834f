"""docs/evidence/differential.md."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dev.report import ROOT

PAGE: Final = ROOT / "docs" / "evidence" / "differential.md"
_RESULT: Final = re.compile(r"(?<=<!-- result -->\n).*?(?=<!-- end -->)", re.DOTALL)


class Run(NamedTuple):
    """The size and the result of a run."""

    first_seed: int
    sequences: int
    operations: int
    differences: int
    known: int
    seconds: float

    @property
    def summary(self) -> str:
        """One sentence about the run."""
        return (
            f"{self.sequences:,} sequences from seed {self.first_seed}, {self.operations:,}"
            f" operations on each broker: {self.differences} differences without a reason,"
            f" {self.known} with one of those below; {self.seconds:.0f} s"
        )


def write_page(run: Run) -> None:
    """Replace the result on the page."""
    PAGE.write_text(_RESULT.sub(f"{run.summary}.\n", PAGE.read_text()))
