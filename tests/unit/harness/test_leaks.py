"""Resources that a test leaves open are found, named and, if they run, ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dev.verify.leftovers import outlives
from tests.harness.plugins import leaks
from tests.harness.plugins.closing import Disk, at_end, closing


def test_each_kind_is_named(tmp_path: Path) -> None:
    before = leaks.open_resources()
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, name="one-more")
    thread.start()
    fd = os.open(tmp_path / "f", os.O_CREAT)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen(["tail", "-f", "/dev/null"]) as child,
    ):
        said = leaks.opened_since(before)
        child.kill()
        port = server.getsockname()[1]
    ended.set()
    thread.join()
    os.close(fd)
    assert said == [
        f"descriptor {fd}: {tmp_path}/f",
        f"descriptor {server_fd(said)}: socket of ('127.0.0.1', {port}), not connected",
        f"child process {child.pid}: tail -f /dev/null ",
        "thread one-more",
    ]
    assert leaks.opened_since(before) == []


def server_fd(said: list[str]) -> str:
    return said[1].removeprefix("descriptor ").partition(":")[0]


def test_a_module_that_leaves_something_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaks, "GRACE_S", 0.1)
    before = leaks.open_resources()
    fd = os.open(tmp_path / "f", os.O_CREAT)
    child = subprocess.Popen(["tail", "-f", "/dev/null"])
    with pytest.raises(pytest.fail.Exception, match=rf"not closed \(2\):\n  descriptor {fd}: /"):
        leaks.expect_none_opened_since(before)
    os.close(fd)
    assert not outlives(child.pid, leaks.GRACE_S), "it was ended"
    child.wait()
    leaks.expect_none_opened_since(before)


def test_what_a_test_opens_is_closed_in_the_reverse_order(tmp_path: Path) -> None:
    closed: list[str] = []
    disk = Disk()
    with closing():
        at_end(lambda: closed.append("first"))
        kept = disk.open(str(tmp_path / "kept"), create=True)
        disk.open(str(tmp_path / "closed"), create=True).close()
        with closing():
            at_end(lambda: closed.append("inner"))
        at_end(lambda: closed.append("last"))
        assert disk.open_files() == [kept.path]
    assert closed == ["inner", "last", "first"]
    assert disk.open_files() == []


SESSION = """
import os, pytest
from tests.harness.plugins import leaks

def pytest_configure(config):
    config.pluginmanager.register(leaks)

@pytest.fixture(scope="session")
def opened():
    return os.open("/dev/null", os.O_RDONLY)
"""
LOOKS = """
from tests.harness.plugins import leaks

def test_it(request):
    before = leaks.open_resources()
    fd = request.getfixturevalue("opened")
    assert not leaks.opened_since(before)
"""


FAILS = """
import pytest
from tests.harness.plugins import leaks

@pytest.fixture(autouse=True, scope="module")
def nothing_left():
    before = leaks.open_resources()
    yield
    leaks.expect_none_opened_since(before)

def test_it():
    kept = open("/dev/null")
    assert kept.closed
"""


def run_below(directory: Path, test: str) -> str:
    """The output of pytest for a folder with one file of tests."""
    below = directory / "tests"
    below.mkdir()
    (below / "conftest.py").write_text(SESSION)
    (below / "test_it.py").write_text(test)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={directory}"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
    )
    return done.stdout


def test_what_the_session_opens_is_not_left(tmp_path: Path) -> None:
    assert "1 passed" in run_below(tmp_path, LOOKS)


def test_what_a_failed_test_refers_to_is_let_go(tmp_path: Path) -> None:
    said = run_below(tmp_path, FAILS)
    assert "1 failed in" in said, said
