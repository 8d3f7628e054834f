"""The list of what belongs at the root: a stray is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.verify.root_files import ROOT_FILES, problems


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ROOT_FILES.keys() - {".gitignore"}:
        (tmp_path / name).mkdir()
    (tmp_path / ".gitignore").write_text(".venv/\n*.pyc\n")
    return tmp_path


def test_a_stray_is_named(root: Path) -> None:
    (root / "s.log").write_text("")
    (root / "new folder").mkdir()
    assert [line.split(" does not belong")[0] for line in problems(root)] == ["new folder", "s.log"]


def test_what_git_ignores_is_no_stray(root: Path) -> None:
    (root / ".venv").mkdir()
    (root / "x.pyc").write_text("")
    (root / ".git").mkdir()
    assert list(problems(root)) == []


def test_what_is_listed_must_be_there(root: Path) -> None:
    (root / "man").rmdir()
    assert [line.split(" is listed")[0] for line in problems(root)] == ["man"]
