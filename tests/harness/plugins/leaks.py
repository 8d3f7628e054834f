"""Finds leaks of this process: descriptors, child processes and threads that a test leaves.

Also a plugin of pytest, because no module is responsible for resources of a session's fixtures.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import stat
import threading
import traceback
from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.processes.waiting import wait_until

GRACE_S: Final = 10.0
"""Libraries end their threads, and close their sockets, a little after the call that ends them."""

KEPT_THREADS: Final = ("kafkapy-disk", "pytest_timeout", "asyncio_", "pydevd")
"""Thread pools of the whole process."""

Resources = Mapping[Hashable, str]

_parents = {os.getpid()}
_session_resources: set[Hashable] = set()
_session_filters: list[Callable[[str], bool]] = []


def open_resources() -> Resources:
    """Open descriptors, child processes and threads: a key and a description for each."""
    return {**_descriptors(), **_children(), **_threads()}


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """Record resources of the session's fixtures. Hooks in a conftest.py below the root are not
    called for these fixtures."""
    if fixturedef.scope != "session":
        return (yield)
    before = open_resources()
    try:
        return (yield)
    finally:
        _session_resources.update(open_resources().keys() - before.keys())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Clear the frames of a failed test: Python keeps the last traceback, and with it the
    variables of its frames."""
    report = yield
    if call.excinfo is not None and not item.config.getoption("usepdb"):
        error: BaseException | None = call.excinfo.value
        while error is not None:
            traceback.clear_frames(error.__traceback__)
            for frame, _ in traceback.walk_tb(error.__traceback__):
                _ = frame.f_locals  # updates the copy that the report was made from
            error = error.__context__
    return report


def add_session_filter(session_filter: Callable[[str], bool]) -> None:
    """Resources with a matching description belong to the session, whenever they are opened."""
    _session_filters.append(session_filter)


def count_children_of(pid: int) -> None:
    """Count children of that process as this one's: it forks for this process."""
    _parents.add(pid)


def opened_since(before: Resources) -> list[str]:
    """Descriptions of resources opened since `before` and still open, except the session's."""
    return [
        description
        for key, description in open_resources().items()
        if key not in before
        and key not in _session_resources
        and not any(session_filter(description) for session_filter in _session_filters)
    ]


def expect_none_opened_since(before: Resources) -> None:
    """Fail with a list of the resources that are still held but were not held `before`. Child
    processes among them are killed."""
    if not opened_since(before):
        return
    gc.collect()
    with suppress(AssertionError):
        wait_until(lambda: not opened_since(before), "nothing is left", GRACE_S)
        return
    left = opened_since(before)
    for process in _children().keys() - before.keys():
        os.kill(process[1], signal.SIGKILL)
    pytest.fail("\n  ".join([f"not closed ({len(left)}):", *left]), pytrace=False)


def release_frames_of(kind: type[BaseException]) -> None:
    """Release the frames of errors of a kind, and so the objects that their variables refer to.

    confluent-kafka never frees an exception that was raised in a callback of its own.
    """
    for error in [each for each in gc.get_objects() if isinstance(each, kind)]:
        error_in_chain: BaseException | None = error
        while error_in_chain is not None:
            error_in_chain.__traceback__ = None
            error_in_chain = error_in_chain.__context__


def _descriptors() -> Resources:
    found: dict[Hashable, str] = {}
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        try:
            status = os.fstat(fd)
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue  # of the listing itself
        if stat.S_ISSOCK(status.st_mode):
            target = _addresses(fd)
        found["descriptor", fd, status.st_dev, status.st_ino] = f"descriptor {fd}: {target}"
    return found


def _addresses(fd: int) -> str:
    """Both ends of a socket."""
    with socket.socket(fileno=os.dup(fd)) as ours:
        try:
            peer = f" to {ours.getpeername()}"
        except OSError:
            peer = ", not connected"
        return f"socket of {ours.getsockname()}{peer}"


def _children() -> dict[tuple[str, int], str]:
    """Child processes by /proc: /proc/self/task/*/children may lack some while another ends."""
    found: dict[tuple[str, int], str] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # a Path takes twice as long
                _, _, rest = file.read().rpartition(b") ")
        except OSError:
            continue  # it ended meanwhile
        if int(rest.split()[1]) in _parents:
            found["process", int(name)] = f"child process {name}: {_command(name)}"
    return found


def _command(pid: str) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return "ended"
    return words.decode(errors="replace")[:200] or "ended, and nobody has waited for it"


def _threads() -> Resources:
    return {
        ("thread", thread.ident): f"thread {thread.name}"
        for thread in threading.enumerate()
        if not thread.name.startswith(KEPT_THREADS)
    }
