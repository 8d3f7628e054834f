"""Which failures scripts/test looks at a second time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dev.verify import second_look

ONE = "tests/integration/test_a.py::test_of_clusters[a b]"


def cache(directory: Path, *failed: str) -> Path:
    file = directory / "v" / "cache" / "lastfailed"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(dict.fromkeys(failed, True)))
    return directory


def test_the_failures_of_all_runs_are_found(tmp_path: Path) -> None:
    first = cache(tmp_path / "first", ONE)
    second = cache(tmp_path / "second", "tests/spark/test_b.py::test_c")
    found = second_look.failed_in([first, second, tmp_path / "passed"])
    assert found == [ONE, "tests/spark/test_b.py::test_c"]


@pytest.mark.parametrize(
    "failed",
    [
        [],
        [ONE, "tests/unit/record/test_batch.py::test_it"],
        ["tests/simulation/test_seeds.py::test_it"],
        [f"{ONE}{n}" for n in range(4)],
    ],
)
def test_what_is_pure_or_fails_widely_gets_no_second_look(
    failed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_look.subprocess, "run", None)
    assert second_look.main([cache(tmp_path / "run", *failed)]) == 1


@pytest.mark.parametrize(("body", "status"), [("True", 0), ("False", 1)])
def test_a_test_of_real_processes_decides_by_its_second_run(
    body: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_look, "_REAL", (str(tmp_path),))
    file = tmp_path / "test_x.py"
    file.write_text(f"def test_x():\n    assert {body}\n")
    assert second_look.main([cache(tmp_path / "run", f"{file}::test_x")]) == status
