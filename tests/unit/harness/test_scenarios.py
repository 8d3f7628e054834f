"""The interpreter of scenarios: what it runs, and what it says of a scenario that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.scenarios.interpreter import (
    Scenario,
    ScenarioError,
    World,
    duration_ms,
    pairs,
    read,
    step,
)


class Shop(World):
    """Something to act on."""

    def __init__(self) -> None:
        super().__init__()
        self.stock: dict[str, int] = {}

    @step("{name} brings {thing}")
    def brings(self, name: str, thing: str, count: str = "1") -> None:
        self.stock[thing] = self.stock.get(thing, 0) + int(count)
        self.report(f"{name} is paid")
        self.report(f"{self.stock[thing]} {thing}")

    @step("the stock of {things...}", "there is {things...}")
    def the_stock(self, things: str) -> None:
        self.report(" ".join(str(self.stock[thing]) for thing in things.split(" and ")))

    @step("the shop closes")
    def closes(self) -> None:
        self.stock.clear()

    @step("bob {verb} tea")
    def bob(self, verb: str) -> None:
        """As `brings`: two steps are called `bob brings tea`."""


def scenarios(tmp_path: Path, text: str) -> list[Scenario]:
    path = tmp_path / "shop.txt"
    path.write_text(text)
    return read(path)


def failure(tmp_path: Path, *steps: str) -> str:
    [scenario] = scenarios(tmp_path, "\n".join(["scenario: one", *steps]))
    with pytest.raises(ScenarioError) as failed:
        scenario.run(Shop())
    return str(failed.value).replace(str(tmp_path), "")


def test_a_file_has_scenarios_and_comments(tmp_path: Path) -> None:
    text = """
    # A shop.
    scenario: first
      ann brings tea, count 2 -> ann is paid; 2 tea   # at once
      ann brings milk
        -> ann is paid
        -> 1 milk

      the stock of tea and milk -> 2 1
      there is tea -> 2

    scenario: second
      the shop closes
    """
    first, second = scenarios(tmp_path, text)
    assert (first.title, second.title) == ("first", "second")
    assert [(step.line, step.expected) for step in first.steps[:2]] == [
        (4, ["ann is paid", "2 tea"]),
        (5, ["ann is paid", "1 milk"]),
    ]
    first.run(Shop())
    second.run(Shop())


def test_the_first_line_that_is_wrong_is_shown_with_what_happened(tmp_path: Path) -> None:
    steps = ["ann brings tea -> ann is paid; 1 tea", "there is tea -> 2", "there is tea -> 3"]
    assert failure(tmp_path, *steps) == ("/shop.txt:3: there is tea\n  expected: 2\n  actual:   1")


def test_an_outcome_that_is_not_expected_is_wrong_and_so_is_one_that_is_missing(
    tmp_path: Path,
) -> None:
    assert "expected: nothing\n  actual:   ann is paid; 1 tea" in failure(
        tmp_path, "ann brings tea"
    )
    assert "expected: closed\n  actual:   nothing" in failure(tmp_path, "the shop closes -> closed")
    assert "expected: 1 tea; ann is paid" in failure(
        tmp_path, "ann brings tea -> 1 tea; ann is paid"
    )


def test_facts_that_a_step_changes_are_outcomes() -> None:
    class Till(Shop):
        def facts(self) -> dict[str, str]:
            return {f"stock of {thing}": str(count) for thing, count in self.stock.items()}

    till = Till()
    assert till.perform("ann brings tea") == ["ann is paid", "1 tea", "stock of tea 1"]
    assert till.perform("there is tea") == ["1"]


def test_a_step_must_be_one_that_there_is(tmp_path: Path) -> None:
    assert failure(tmp_path, "ann steals tea") == (
        "/shop.txt:2: ann steals tea\n  0 steps are called 'ann steals tea'"
    )
    assert "2 steps are called 'bob brings tea'" in failure(tmp_path, "bob brings tea")
    assert "unexpected keyword argument 'colour'" in failure(tmp_path, "ann brings tea, colour red")


def test_an_exception_names_its_line(tmp_path: Path) -> None:
    [scenario] = scenarios(tmp_path, "scenario: one\n  there is tea")
    with pytest.raises(KeyError) as failed:
        scenario.run(Shop())
    assert failed.value.__notes__ == [f"{tmp_path}/shop.txt:2: there is tea"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a step", "txt:1: this step is in no scenario"),
        ("scenario: one\n-> outcome", "txt:2: no step has this outcome"),
        ("scenario: one\n  a step\nscenario: one", "txt:3: a second scenario has this title"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        scenarios(tmp_path, text)


def test_words_of_steps() -> None:
    assert [duration_ms(text) for text in ("5 ms", "10 s", "2 min")] == [5, 10_000, 120_000]
    assert pairs("a=p0 b=p1") == {"a": "p0", "b": "p1"}
