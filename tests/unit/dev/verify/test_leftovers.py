"""A file in the directory that a run had as /tmp is a leftover."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.verify import leftovers


def test_a_file_left_in_tmp_fails_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in leftovers.IGNORED_DIRECTORIES:
        (tmp_path / name).mkdir()
    assert leftovers.main("no process bears this", str(tmp_path)) == 0
    (tmp_path / "blockmgr-1").mkdir()
    assert leftovers.main("no process bears this", str(tmp_path)) == 1
    assert capsys.readouterr().err == "left in /tmp by the tests: blockmgr-1\n"
