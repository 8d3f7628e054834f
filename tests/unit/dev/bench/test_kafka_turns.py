"""`scripts/bench --kafka` warms both systems before it judges them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dev.bench.kafka_rows import Measured
from dev.bench.kafka_turns import RUNS_MAX, agree, in_turn

ASLEEP = [10.0, 40.0, 70.0, 98.0, 100.0, 104.0, 101.0]


def runs_of(rates: Mapping[str, list[float]], log: list[str]) -> dict[str, Measured]:
    given: dict[str, Iterator[float]] = {system: iter(values) for system, values in rates.items()}

    def run(system: str) -> Measured:
        log.append(system)
        rate = next(given[system])
        return Measured([rate, 1000 / rate], moved_bytes=rate)

    return in_turn(run, list(rates))


def test_three_in_a_row_are_alike() -> None:
    assert not agree([100.0, 101.0])
    assert not agree([100.0, 80.0, 101.0])
    assert agree([10.0, 92.0, 100.0, 101.0])


def test_no_system_is_judged_by_cold_runs() -> None:
    log: list[str] = []
    found = runs_of({"cold": ASLEEP, "warm": [50.0] * RUNS_MAX}, log)
    assert log == ["cold", "warm"] * 6, "each has as many runs, by turns"
    assert found["cold"].values == [100.0, 10.0]
    assert found["cold"].moved_bytes == 100.0
    assert found["warm"].values == [50.0, 20.0]


def test_an_uneven_system_gets_the_median_of_its_last_runs() -> None:
    log: list[str] = []
    found = runs_of({"uneven": [10.0, 20.0] * RUNS_MAX}, log)
    assert len(log) == RUNS_MAX
    assert found["uneven"].values[0] == 20.0
