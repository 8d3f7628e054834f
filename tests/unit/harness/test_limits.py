"""A test that waits for ever is ended, with what it started, and the others run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from dev.verify.leftovers import outlives
from tests.harness.plugins.limits import HARD_LIMIT_VARIABLE

ROOT = Path(__file__).parents[3]
LIMIT_S = 60.0

CONFTEST = """
from tests.harness.plugins import limits

def pytest_configure(config):
    config.pluginmanager.register(limits)
"""
WAITS = """
import pathlib, pytest, signal, subprocess, threading

@pytest.fixture
def child():
    process = subprocess.Popen(["tail", "-f", "/dev/null"])
    pathlib.Path(__file__).with_name("pid").write_text(str(process.pid))
    yield
    process.kill()
    process.wait()

def waits_too():
    threading.Event().wait()

def test_that_waits(child):
    {prepare}
    threading.Thread(target=waits_too, daemon=True).start()
    threading.Event().wait()

def test_after_it():
    pass
"""


def run(
    directory: Path, prepare: str, *words: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    """pytest on a test that waits for ever."""
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "test_it.py").write_text(WAITS.format(prepare=prepare))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=1", *words],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def test_its_fixtures_end_what_they_started_and_all_stacks_are_told(tmp_path: Path) -> None:
    done = run(tmp_path, "pass", "--timeout-method=signal")
    assert "1 failed, 1 passed" in done.stdout
    assert ">       threading.Event().wait()" in done.stdout
    stacks = done.stdout.partition("stacks of all threads")[2]
    assert re.search(r'File ".*test_it\.py", line \d+ in waits_too', stacks)
    assert not outlives(int((tmp_path / "pid").read_text()), 0)


def test_what_no_signal_reaches_loses_its_process(tmp_path: Path) -> None:
    deaf = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])"
    done = run(tmp_path, deaf, "-n", "1", **{HARD_LIMIT_VARIABLE: "2"})
    assert "1 failed, 1 passed" in done.stdout
    assert "crashed while running 'test_it.py::test_that_waits'" in done.stdout
    assert re.search(r'File ".*test_it\.py", line \d+ in test_that_waits', done.stderr)
    assert not outlives(int((tmp_path / "pid").read_text()), LIMIT_S)
