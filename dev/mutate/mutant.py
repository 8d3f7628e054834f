"""Mutants: named edits of production code, each of which breaks one rule.

They are the files of `mutants/`, one for each area.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final, NamedTuple

LISTS: Final = Path(__file__).parent / "mutants"


class Misfit(Exception):
    """An edit whose old text is not found exactly once: the code has changed."""


class Mutant(NamedTuple):
    """One edit of one file.

    `loses` is the loss to users. `equivalent` is the reason why the edit has no visible
    effect: another rule guarantees the same. `tests` are the tests that catch it, where seeds
    rarely reach the code.
    """

    area: str
    name: str
    file: str
    old: str
    new: str
    loses: str
    equivalent: str = ""
    tests: str = ""

    def apply(self, text: str) -> str:
        """The text of the file with the edit made. Raises Misfit."""
        count = text.count(self.old)
        if count != 1:
            raise Misfit(f"{self.name}: its old text is {count} times in {self.file}")
        return text.replace(self.old, self.new)


def load() -> list[Mutant]:
    """All mutants, by area."""
    return [
        Mutant(path.stem, **fields)
        for path in sorted(LISTS.glob("*.toml"))
        for fields in tomllib.loads(path.read_text())["mutant"]
    ]
