"""`kafkapy` as a user's process, against one cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIMIT_S = 120


class Kafkapy:
    """`kafkapy(command, *words)` runs `kafkapy command --bootstrap-server ... words`."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def command(self, name: str, *words: str) -> list[str]:
        """The command line."""
        executable = str(Path(sys.executable).parent / "kafkapy")
        return [executable, name, "--bootstrap-server", self.bootstrap_servers, *words]

    def __call__(self, name: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(name, *words),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
