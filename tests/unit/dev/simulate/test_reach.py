"""The places that the simulator must reach are still in the code."""

from __future__ import annotations

import pytest

from dev.mutate.mutant import Misfit
from dev.report import ROOT
from dev.simulate import reach
from kafkapy.common.errors import ErrorCode

PLACES, ERRORS = reach.load()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_call_can_be_inserted(place: reach.Place) -> None:
    compile(place.insert((ROOT / place.file).read_text()), place.file, "exec")


def test_the_call_stands_before_the_last_line() -> None:
    place = reach.Place("kind", "{x} of y", "f.py", "if x:\n    a()")
    [_, call, line] = place.insert("if x:\n    a()\n").splitlines()
    assert call.startswith("    __import__(")
    assert call.endswith(".note('kind', f'{x} of y')")
    assert line == "    a()"
    with pytest.raises(Misfit):
        place.insert("if y:\n    a()\n")


def test_everything_has_one_name() -> None:
    assert set(ERRORS) <= set(ErrorCode.__members__)
    assert len({(p.kind, p.name) for p in PLACES}) == len(PLACES)
