"""The list of mutants fits today's code, and its page keeps what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.mutate import page
from dev.mutate.hunt import ROOT, Result, copy_tree
from dev.mutate.mutant import Misfit, Mutant, load

MUTANTS = load()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_applies_to_the_code_of_today(mutant: Mutant) -> None:
    broken = mutant.apply((ROOT / mutant.file).read_text())
    compile(broken, mutant.file, "exec")


def test_each_mutant_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= 120
    assert {mutant.area for mutant in MUTANTS} == {
        "controller", "coordinator", "record", "replication", "storage"
    }  # fmt: skip


def test_an_edit_that_fits_nowhere_or_twice_is_an_error() -> None:
    mutant = Mutant("area", "name", "file.py", "a = 1", "a = 2", "something")
    assert mutant.apply("a = 1\n") == "a = 2\n"
    for text in ("a = 3\n", "a = 1\na = 1\n"):
        with pytest.raises(Misfit):
            mutant.apply(text)


def test_the_copy_has_all_that_the_simulator_imports(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    assert (tmp_path / "kafkapy/server/broker.py").exists()
    assert (tmp_path / "tests/simulation/simulation.py").exists()
    assert (tmp_path / "tests/harness/faults/anomalies.py").exists()
    assert (tmp_path / "dev/mutate/hunt.py").exists()
    assert (tmp_path / "dev/__init__.py").exists()


def test_the_page_keeps_the_rows_of_other_mutants(tmp_path: Path) -> None:
    path, (first, second, *_) = tmp_path / "mutants.md", MUTANTS
    caught = Result(first, 7, 7, "CommittedLogs", "CommittedLogs: something", 1.0)
    page.write([caught, Result(second, 500, 499, "", "", 1.0)], MUTANTS, path)
    again = Result(second, 12, 11, "ClientView", "ClientView: something", 1.0)
    page.write([again], MUTANTS, path)
    text = path.read_text()
    assert f"| `{first.name}` | {first.loses} | 7 | `CommittedLogs` |" in text
    assert f"| `{second.name}` | {second.loses} | 12 | `ClientView` |" in text
    assert "2 of 2 mutants are caught" in text
    assert page.SURVIVES not in text.partition("## Score")[2]
