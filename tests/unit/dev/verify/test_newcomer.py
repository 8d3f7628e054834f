"""Files and processes that scripts/newcomer reports as left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dev.verify import newcomer
from dev.verify.leftovers import IGNORED_DIRECTORIES
from dev.verify.newcomer import MARK, NamesBefore, left_behind

IDLE = "import signal; print(flush=True); signal.pause()"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No fixed ports, and nothing of what else runs on this machine."""
    monkeypatch.setattr(newcomer, "PORTS", ())
    monkeypatch.setattr(newcomer, "GRACE_S", 0.0)


def repository(directory: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(directory)], check=True)
    return directory


def found(home: Path, *clones: Path) -> list[str]:
    """Without what others did in /tmp meanwhile."""
    known = NamesBefore(newcomer.names(Path("/tmp")), newcomer.names(newcomer.real_home()))
    lines = left_behind(known, home, clones)
    return [line for line in lines if not line.startswith(("file: /tmp/", "file: /root"))]


def test_nothing(tmp_path: Path) -> None:
    (tmp_path / "home" / ".cache").mkdir(parents=True)
    assert found(tmp_path / "home", repository(tmp_path / "clone")) == []


def test_files_in_the_home_directory_and_in_the_clone(tmp_path: Path) -> None:
    clone = repository(tmp_path / "clone")
    (clone / "s.log").write_text("")
    lines = found(clone / "none", clone)
    assert lines == [f"file in {clone}: ?? s.log"]
    known = NamesBefore(set(), set())
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "derby.log").write_text("")
    lines = list(left_behind(known, tmp_path / "home", []))
    assert f"file: {tmp_path}/home/derby.log" in lines
    assert all(f"file: /tmp/{name}" not in lines for name in IGNORED_DIRECTORIES)


def test_a_process_is_named_and_ended(tmp_path: Path) -> None:
    environment = {**os.environ, MARK: str(os.getpid())}
    with subprocess.Popen(
        [sys.executable, "-c", IDLE], env=environment, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        [line] = found(tmp_path / "home")
        assert line.startswith(f"process {child.pid}: {sys.executable} -c")
        assert child.wait() == -9
