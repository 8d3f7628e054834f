"""A few thousand of the fuzzer's requests: the broker lives, is quiet, and stays small.

`scripts/fuzz` sends a hundred thousand and measures how long others wait. Here nothing is timed: no
slice of a large request may cost more than its units, which the broker would log.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.fuzz.main import Fuzzer


@pytest.mark.parametrize(("kind", "seed"), [("plain", 1), ("guarded", 2)])
def test_hostile_requests_harm_nobody(tmp_path: Path, kind: str, seed: int) -> None:
    fuzzer = Fuzzer(tmp_path / "log", kind, seed, is_timed=False)
    fuzzer.run(1000)
    assert fuzzer.result.violations == []
    assert fuzzer.result.requests == 1000
    assert fuzzer.result.pings > 0
