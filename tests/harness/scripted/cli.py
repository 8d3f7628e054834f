"""Running `kafkapy` inside the test process, with its streams captured and its brokers scripted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from kafkapy.cli.framework.command_line import run
from kafkapy.cli.framework.environment import Environment
from tests.harness.scripted.scripted_broker import ScriptedCluster


@dataclass
class Outcome:
    """Result of a command: its streams and its exit status."""

    stdout: str
    stderr: str
    status: int

    @property
    def data(self) -> Any:
        """The data of the JSON envelope on stdout."""
        envelope = json.loads(self.stdout)
        assert list(envelope) == ["kafkapy", "command", "data"]
        assert envelope["kafkapy"] == 1
        return envelope["data"]


class Terminal(Environment):
    """An environment whose stdin and stdout are a terminal."""

    @property
    def on_terminal(self) -> bool:
        return True

    @property
    def interactive(self) -> bool:
        return True


def kafkapy(
    *words: str,
    cluster: ScriptedCluster | None = None,
    stdin: bytes = b"",
    terminal: bool = False,
) -> Outcome:
    """Run `kafkapy <words>`; faults of kafkapy itself are raised, not reported."""
    status: int | str | None
    with CliRunner().isolation(input=stdin) as (stdout, stderr, _):
        kind = Terminal if terminal else Environment
        env = kind(connector=cluster.connect if cluster else None)
        try:
            status = run(words, env)
        except SystemExit as ending:
            status = ending.code
        env.stdout.flush()
        env.stderr.flush()
        assert isinstance(status, int), status
        return Outcome(stdout.getvalue().decode(), stderr.getvalue().decode(), status)
