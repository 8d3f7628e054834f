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

Held = Mapping[Hashable, str]

_parents = {os.getpid()}
_of_the_session: set[Hashable] = set()
_is_of_the_session: list[Callable[[str], bool]] = []


def held() -> Held:
    """Open descriptors, child processes and threads: a key and a description for each."""
    return {**_descriptors(), **_children(), **_threads()}


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """Record resources of the session's fixtures. Hooks in a conftest.py below the root are not
    called for these fixtures."""
    if fixturedef.scope != "session":
        return (yield)
    before = held()
    try:
        return (yield)
    finally:
        _of_the_session.update(held().keys() - before.keys())


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


def belongs_to_the_session_if(is_of_it: Callable[[str], bool]) -> None:
    """Resources with a matching description belong to the session, whenever they are opened."""
    _is_of_the_session.append(is_of_it)


def answer_for_children_of(pid: int) -> None:
    """Count children of that process as this one's: it forks for this process."""
    _parents.add(pid)


def left_since(before: Held) -> list[str]:
    """Descriptions of resources opened since `before` and still open, except the session's."""
    return [
        said
        for key, said in held().items()
        if key not in before
        and key not in _of_the_session
        and not any(is_of_it(said) for is_of_it in _is_of_the_session)
    ]


def expect_none_since(before: Held) -> None:
    """Fail with a list of the resources that are still held but were not held `before`. Child
    processes among them are killed."""
    if not left_since(before):
        return
    gc.collect()
    with suppress(AssertionError):
        wait_until(lambda: not left_since(before), "nothing is left", GRACE_S)
        return
    left = left_since(before)
    for process in _children().keys() - before.keys():
        os.kill(process[1], signal.SIGKILL)
    pytest.fail("\n  ".join([f"not closed ({len(left)}):", *left]), pytrace=False)


def forget_raised(kind: type[BaseException]) -> None:
    """Release the frames of errors of a kind, and so the objects that their variables refer to.

    confluent-kafka never frees an exception that was raised in a callback of its own.
    """
    for error in [each for each in gc.get_objects() if isinstance(each, kind)]:
        passed: BaseException | None = error
        while passed is not None:
            passed.__traceback__ = None
            passed = passed.__context__


def _descriptors() -> Held:
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


def _threads() -> Held:
    return {
        ("thread", thread.ident): f"thread {thread.name}"
        for thread in threading.enumerate()
        if not thread.name.startswith(KEPT_THREADS)
    }
