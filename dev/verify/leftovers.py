"""Finds processes and files that a run left behind. An environment variable marks its processes."""

from __future__ import annotations

import getpass
import os
import select
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

VARIABLE = "KAFKAPY_TEST_RUN"
GRACE_S = 15.0  # a Spark JVM notices a little later that its Python has gone
IGNORED_DIRECTORIES = {f"hsperfdata_{getpass.getuser()}", f"pytest-of-{getpass.getuser()}"}
"""Directories in /tmp that every JVM and every pytest leaves."""


def marked(variables: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """(pid, command) of each other process started with these in its environment (Linux)."""
    wanted = {f"{name}={value}".encode() for name, value in variables.items()}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile, or is not ours
        if wanted.issubset(environment) and int(entry.name) not in (os.getpid(), os.getppid()):
            yield int(entry.name), command


def outlives(pid: int, limit_s: float) -> bool:
    """Whether a process is still there when the limit has passed."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    found = ended.poll(limit_s * 1000)
    os.close(handle)
    return not found


def main(mark: str, *temporary: str) -> int:
    """Print and end the processes that are left, and print the files; returns 0 if none are left.

    `temporary` are directories that the run had as /tmp.
    """
    running = [found for found in marked({VARIABLE: mark}) if outlives(found[0], GRACE_S)]
    for pid, command in running:
        print(f"left running by the tests: {pid} {command[:200]}", file=sys.stderr)
        os.kill(pid, signal.SIGKILL)
    files = [path for name in temporary for path in Path(name).iterdir()]
    left = sorted(path for path in files if path.name not in IGNORED_DIRECTORIES)
    for path in left:
        print(f"left in /tmp by the tests: {path.name}", file=sys.stderr)
    return 1 if running or left else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
