"""Reads and runs scenarios: steps, line by line, with all their outcomes.

`docs/CONTRIBUTING.md` describes the format. A world is the object of a scenario; its steps are
methods that `step` marks with the words that call them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

ARROW: Final = "->"
SCENARIO: Final = "scenario:"
UNITS: Final = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000}
Method = TypeVar("Method", bound=Callable[..., None])


class ScenarioError(AssertionError):
    """A line that cannot be read, or an outcome that does not happen."""


@dataclass
class Step:
    """One line, and the outcomes that it and the lines below it expect."""

    line: int
    text: str
    expected: list[str]


@dataclass
class Scenario:
    """The steps below one title."""

    path: Path
    title: str
    steps: list[Step] = field(default_factory=list)

    def run(self, world: World) -> None:
        """Perform the steps, up to the first whose outcomes are not the expected ones."""
        for step in self.steps:
            where = f"{self.path}:{step.line}: {step.text}"
            try:
                actual = world.perform(step.text)
            except ScenarioError as error:
                raise ScenarioError(f"{where}\n  {error}") from None
            except Exception as error:
                error.add_note(where)
                raise
            if actual != step.expected:
                expected, got = ("; ".join(each) or "nothing" for each in (step.expected, actual))
                raise ScenarioError(f"{where}\n  expected: {expected}\n  actual:   {got}")


def read(path: Path) -> list[Scenario]:
    """The scenarios of a file."""
    scenarios: list[Scenario] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.partition("#")[0].strip()
        if text.startswith(SCENARIO):
            title = text.removeprefix(SCENARIO).strip()
            if title in (scenario.title for scenario in scenarios):
                raise ScenarioError(f"{path}:{number}: a second scenario has this title")
            scenarios.append(Scenario(path, title))
        elif text:
            if not scenarios:
                raise ScenarioError(f"{path}:{number}: this step is in no scenario")
            _read_step(scenarios[-1], number, text)
    return scenarios


def _read_step(scenario: Scenario, number: int, text: str) -> None:
    words, _, outcomes = (part.strip() for part in f" {text} ".partition(f" {ARROW} "))
    if words:
        scenario.steps.append(Step(number, words, []))
    elif not scenario.steps:
        raise ScenarioError(f"{scenario.path}:{number}: no step has this outcome")
    scenario.steps[-1].expected += filter(None, outcomes.split("; "))


def step(*patterns: str) -> Callable[[Method], Method]:
    """Mark a method as the step that these words call.

    `{name}` is one word and `{name...}` several: arguments of the method. The text after a comma
    is an option, a keyword argument: its first word names it.
    """

    def mark(method: Method) -> Method:
        method.patterns = patterns  # type: ignore[attr-defined]
        return method

    return mark


class World:
    """The object of a scenario. A step reports its outcomes in the order in which they happen; the
    facts that it has changed follow."""

    def __init__(self) -> None:
        self._outcomes: list[str] = []
        self._last_facts: dict[str, str] = {}
        self.steps = list(self._find_steps())

    def report(self, outcome: str) -> None:
        self._outcomes.append(outcome)

    def facts(self) -> dict[str, str]:
        """Values that can be seen at any time, by name."""
        return {}

    def changes(self, before: dict[str, str], after: dict[str, str]) -> list[str]:
        """The outcomes that follow from the differences of two sets of facts."""
        return [f"{name} {value}" for name, value in after.items() if before.get(name) != value]

    def perform(self, text: str) -> list[str]:
        """Perform a step and return its outcomes."""
        head, *options = text.split(", ")
        found = [(m, match) for p, m in self.steps if (match := p.fullmatch(head))]
        if len(found) != 1:
            raise ScenarioError(f"{len(found)} steps are called {head!r}")
        [(method, match)] = found
        arguments: dict[str, str] = match.groupdict()
        for option in options:
            name, _, value = option.partition(" ")
            arguments[name.replace("-", "_")] = value
        try:
            inspect.signature(method).bind(**arguments)
        except TypeError as error:
            raise ScenarioError(f"options of {head!r}: {error}") from None
        method(**arguments)
        outcomes, self._outcomes = self._outcomes, []
        before, self._last_facts = self._last_facts, self.facts()
        return [*outcomes, *self.changes(before, self._last_facts)]

    def _find_steps(self) -> Iterator[tuple[re.Pattern[str], Callable[..., None]]]:
        for name in dir(type(self)):
            for pattern in getattr(getattr(type(self), name), "patterns", ()):
                one_word = re.sub(r"\{(\w+)\}", r"(?P<\1>\\S+)", pattern)
                words = re.sub(r"\{(\w+)\.\.\.\}", r"(?P<\1>.+)", one_word)
                yield re.compile(words), getattr(self, name)


def duration_ms(text: str) -> int:
    """The milliseconds of `10 s`."""
    number, unit = text.split()
    return int(number) * UNITS[unit]


def pairs(text: str) -> dict[str, str]:
    """The names and values of `a=p0 b=p1`."""
    return dict(word.split("=", 1) for word in text.split())
