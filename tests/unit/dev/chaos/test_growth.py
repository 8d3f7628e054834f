"""Growth is what goes on in the last third of a run; restarts and plateaus are none."""

from __future__ import annotations

from collections.abc import Sequence

from dev.chaos.growth import Sample, grown, table


def curve(resident: Sequence[float], descriptors: Sequence[float] = ()) -> list[Sample]:
    """Of one broker."""
    known = descriptors or [100.0] * len(resident)
    return [
        Sample(2.0 * n, 1, mib, files, 0.0)
        for n, (mib, files) in enumerate(zip(resident, known, strict=True))
    ]


def test_a_plateau_is_no_growth() -> None:
    assert grown(curve([30, 50, 60, 70, 70, 71, 70, 72, 71])) == []


def test_a_restart_is_no_growth() -> None:
    assert grown(curve([30, 60, 60, 60, 30, 60, 60, 61, 60])) == []


def test_growth_until_the_end() -> None:
    assert grown(curve([30, 40, 50, 60, 70, 80, 110, 120, 130])) == [
        "resident_mib of broker 1: 70.0, then 120.0"
    ]
    assert grown(curve([60] * 9, [100, 110, 120, 130, 140, 150, 290, 300, 310])) == [
        "descriptors of broker 1: 140.0, then 300.0"
    ]


def test_too_few_samples() -> None:
    assert grown(curve([1, 100])) == []


def test_the_table_has_first_last_and_greatest() -> None:
    assert table(curve([30, 60, 50])) == [
        ["1", "30.0, 50.0, 60.0", "100.0, 100.0, 100.0", "0.0, 0.0, 0.0"]
    ]
