"""Disks that misbehave under a broker of either kind: `bad_disk.c`, preloaded into its process."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

SOURCE = Path(__file__).with_name("bad_disk.c")
_BYTES = 4096
_PATH_AT = 64


class Disorder(Enum):
    """Failures of a disk; the values are those of `bad_disk.c`."""

    NONE = b"-"
    EIO = b"E"
    ENOSPC = b"N"
    SLOW = b"S"
    LYING = b"L"


def compiled(directory: Path) -> Path:
    """The library, compiled into a directory. Raises RuntimeError without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise RuntimeError("no C compiler: install cc (Debian: gcc) for disks that misbehave")
    library = directory / "bad_disk.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


class BadDisk:
    """A directory whose disk can misbehave, for a process with its `environment`."""

    def __init__(self, library: Path, control: Path, directory: Path) -> None:
        self.directory = directory
        path = str(directory.resolve()).encode()
        control.write_bytes((b"-".ljust(_PATH_AT, b"\0") + path).ljust(_BYTES, b"\0"))
        self._control = control
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(library),
            "KAFKAPY_BAD_DISK": str(control),
        }

    def misbehave(self, how: Disorder) -> None:
        with self._control.open("r+b") as control:
            control.write(how.value)

    def heal(self) -> None:
        self.misbehave(Disorder.NONE)
