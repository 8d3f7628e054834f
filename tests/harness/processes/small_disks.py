"""File systems of a few MiB, which a test can fill up."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def mount(where: Path, size: str, *options: str) -> bool:
    """Mount a tmpfs of `size` (as mount writes it: "8m"). Returns whether that worked."""
    wanted = ",".join([f"size={size}", *options])
    command = ["mount", "-t", "tmpfs", "-o", wanted, "tmpfs", str(where)]
    return subprocess.run(command, capture_output=True).returncode == 0


def can_mount() -> bool:
    """Whether this process may mount a small disk."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        worked = mount(Path(scratch), "1m")
        if worked:
            subprocess.run(["umount", scratch], check=True)
        return worked


@contextmanager
def mounted(where: Path, size: str) -> Iterator[Path]:
    """A new directory with a small disk, which is unmounted at the end."""
    where.mkdir()
    assert mount(where, size)
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)
