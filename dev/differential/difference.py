"""A difference between two systems, as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Outcome = tuple[Any, ...]
"""The comparable parts of an operation's answers."""


class Difference(NamedTuple):
    """An operation (`where`) with two different outcomes: kafkapy's, then Apache Kafka's."""

    seed: int
    configs: Mapping[str, str]
    operations: Sequence[Any]
    where: str
    outcomes: tuple[Outcome, Outcome]

    def text(self) -> str:
        """The sequence, and the parts of the outcomes that differ."""
        ours, theirs = _first_parts_that_differ(*self.outcomes)
        steps = "".join(f"\n    {_short(operation)}" for operation in self.operations)
        configs = f", topic configs {self.configs}" if self.configs else ""
        return (
            f"seed {self.seed}{configs}:{steps}\n  {_short(self.where)}\n"
            f"  kafkapy      {_short(ours)}\n  Apache Kafka {_short(theirs)}"
        )


def _first_parts_that_differ(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """The first parts of two outcomes that differ."""
    if not (isinstance(ours, tuple | list) and isinstance(theirs, tuple | list)):
        return ours, theirs
    if len(ours) != len(theirs):
        both = zip(ours, theirs, strict=False)
        same = next((i for i, pair in enumerate(both) if pair[0] != pair[1]), -1)
        return ours[same:], theirs[same:]
    pairs = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    return _first_parts_that_differ(*pairs[0])


def _short(value: object) -> str:
    """A value with its runs of one letter shortened."""
    return re.sub(r"([A-Za-z])\1{4,}", lambda found: f"{found[1]}*{len(found[0])}", str(value))
