"""Finds this user's servers on this machine by their locked pid files.

A server keeps its pid file open with a POSIX lock while it runs. The kernel reports the process
that holds the lock. The lock ends with the process, so a reused pid is never mistaken for a server.
Command lines are not used.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
# struct flock: type, whence, start, length (0: to the end), pid.
_FLOCK: Final = struct.Struct("@hhqqi0q")
_ANY_WRITER: Final = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
_DELETED: Final = " (deleted)"


def lock(path: Path) -> int | None:
    """Lock a pid file and write this process's pid. Returns the descriptor that keeps the lock.

    None if another process holds it. The descriptor may be passed on through `exec`.

    Raises:
        OSError: the file cannot be written.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(fd)
        return None
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    return fd


def holder(path: Path) -> int | None:
    """The pid of this user's server that holds this pid file; None if none does.

    Symbolic links are not followed: they could lead to a file that another program has locked.
    """
    return _holder(path, os.O_NOFOLLOW)


def holds(pid: int, name: str) -> bool:
    """Whether a process of this user holds a pid file of this name, even one that was removed."""
    return (pid != os.getpid() and _is_own_process(pid)) and any(
        opened.removesuffix(_DELETED).endswith(f"/{name}") and _holder(link, 0) == pid
        for link, opened in _open_files(_PROC / str(pid) / "fd")
    )


def holders(name: str) -> list[int]:
    """The pids of all servers of this user with a pid file of this name."""
    pids = (int(entry) for entry in os.listdir(_PROC) if entry.isdigit())
    return sorted(pid for pid in pids if holds(pid, name))


def _open_files(directory: Path) -> Iterator[tuple[Path, str]]:
    """(link, path) of a process's open files; nothing for an ended process, or another user's."""
    with contextlib.suppress(OSError):
        for descriptor in os.listdir(directory):
            with contextlib.suppress(OSError):  # closed meanwhile
                yield directory / descriptor, os.readlink(directory / descriptor)


def _holder(path: Path, flags: int) -> int | None:
    with contextlib.suppress(OSError):
        # O_NONBLOCK: a FIFO of that name would make the tool wait.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
        try:
            if os.fstat(fd).st_uid == os.geteuid():
                pid: int = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, _ANY_WRITER))[-1]
                return pid if pid > 0 and _is_own_process(pid) else None
        finally:
            os.close(fd)
    return None


def _is_own_process(pid: int) -> bool:
    """Whether a process belongs to this user and has the pid namespace of this process."""
    try:
        return os.stat(_PROC / str(pid)).st_uid == os.geteuid() and os.readlink(
            _PROC / str(pid) / "ns" / "pid"
        ) == os.readlink("/proc/self/ns/pid")
    except OSError:
        return False
