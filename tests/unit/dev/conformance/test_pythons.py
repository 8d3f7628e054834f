"""Which Pythons are tried, and what is told of a run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dev import report
from dev.conformance import pythons


def fake_python(directory: Path, name: str, said: str) -> Path:
    """Something that says this version of itself."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\necho {said}\n" if said else "#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


def test_the_newest_of_each_version_but_ours_and_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = f"python3.{sys.version_info[1]}"
    fake_python(tmp_path / "bin", ours, ".".join(map(str, sys.version_info[:3])))
    fake_python(tmp_path / "bin", "python3.10", "3.10.13")
    fake_python(tmp_path / "bin", "python3.97", "3.97.1")
    fake_python(tmp_path / "bin", "python3.99", "")  # no venv in it
    newer = fake_python(tmp_path / "pyenv/versions/3.97.20/bin", "python3.97", "3.97.20")
    other = fake_python(tmp_path / "pyenv/versions/3.98.0/bin", "python3.98", "3.98.0")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert pythons.other_pythons(lambda _: None) == {"3.97.20": newer, "3.98.0": other}


@pytest.mark.parametrize(
    ("test", "status", "found"),
    [
        ("def test_it():\n    pass\n", 0, "1 passed"),
        (
            "def test_it():\n    assert 0\ndef test_other():\n    pass\n",
            1,
            "1 failed, 1 passed; {path}::test_it",
        ),
        ("import nothing_of_that_name\n", 2, "1 error; {path}"),
    ],
    ids=["passed", "failed", "broken"],
)
def test_what_is_told(tmp_path: Path, test: str, status: int, found: str) -> None:
    path = tmp_path / "test_one.py"
    path.write_text(test)
    told = pythons._tests(Path(sys.executable), [str(path)])
    assert told == (status, found.format(path=os.path.relpath(path, report.ROOT)))
