"""Finds the process that listens on a port of this machine, for error messages (Linux)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"
_COMMAND_CHARS: Final = 100


def port_holders(port: int, proc: Path = _PROC) -> str:
    """` by process PID (COMMAND)` for each process that listens on a port, at any address.

    Empty if /proc does not show the process: only root sees the sockets of other users' processes.
    """
    sockets = set(_sockets(port, proc))
    pids = sorted(
        pid for pid in _pids(proc) if sockets and sockets & set(_open_sockets(proc / pid))
    )
    return "".join(f" by process {pid} ({_command(proc / pid)})" for pid in pids)


def _sockets(port: int, proc: Path) -> Iterator[str]:
    """The listening sockets of a port, in the form of the links in /proc/PID/fd."""
    for family in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (proc / "net" / family).read_text().splitlines()[1:]:
                _, local, _, state, *rest = line.split()
                if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                    yield f"socket:[{rest[5]}]"


def _pids(proc: Path) -> Iterator[str]:
    return (entry.name for entry in proc.iterdir() if entry.name.isdigit())


def _open_sockets(process: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for link in (process / "fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                yield str(link.readlink())


def _command(process: Path) -> str:
    """The command line on one line, without control characters."""
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "ended meanwhile"
    text = " ".join(words).strip()
    text = "".join(character if character.isprintable() else "?" for character in text)
    return text if len(text) <= _COMMAND_CHARS else f"{text[:_COMMAND_CHARS]}..."
