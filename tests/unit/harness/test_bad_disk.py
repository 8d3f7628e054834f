"""A process whose disk misbehaves gets the errors; files elsewhere are not touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from errno import EIO, ENOSPC
from pathlib import Path

from tests.harness.faults.bad_disk import BadDisk, Disorder, compiled
from tests.harness.plugins import unchecked

PROGRAM = """
import os, sys
for path in sys.argv[1:]:
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    for act, *words in (os.pwritev, [b"x"], 0), (os.write, b"x"), (os.fsync,):
        try:
            print(act(fd, *words), end=" ")
        except OSError as error:
            print(error.errno, end=" ")
"""

if shutil.which("cc"):

    def test_writes_fail_below_the_directory_only(tmp_path: Path) -> None:
        bad = tmp_path / "bad"
        bad.mkdir()
        disk = BadDisk(compiled(tmp_path), tmp_path / "control", bad)

        def printed() -> str:
            command = [sys.executable, "-S", "-c", PROGRAM, str(bad / "f"), str(tmp_path / "g")]
            environment = {**os.environ, **disk.environment}
            return subprocess.run(command, env=environment, capture_output=True, text=True).stdout

        well = "1 1 None "
        assert printed() == well + well
        disk.misbehave(Disorder.EIO)
        assert printed() == f"{EIO} {EIO} {EIO} {well}"
        disk.misbehave(Disorder.ENOSPC)
        assert printed() == f"{ENOSPC} {ENOSPC} None {well}"
        disk.heal()
        assert printed() == well + well

else:
    unchecked.note("disks that misbehave", "no C compiler")
