"""The commands in README.md and docs/how-to/run-several-brokers.md do what the text says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.broker_process import free_port

ROOT = Path(__file__).parents[2]
LIMIT_S = 120
PORTS = ("9092", "9093", "9094", "2181")


def commands(document: str, heading: str) -> str:
    """The first shell block under a heading, without what installs the package."""
    section = (ROOT / document).read_text().split(f"\n## {heading}\n", 1)[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None, heading
    return "\n".join(x for x in block[1].splitlines() if not x.startswith("pip "))


def type_in(script: str, directory: Path) -> str:
    """Run the lines in one shell, with ports and directories of this test; what they print."""
    for port in PORTS:
        script = re.sub(rf"\b{port}\b", str(free_port()), script)
    script = script.replace("/tmp/kafkapy-", f"{directory}/")
    # Only this test's brokers: the plain command stops every broker of the user.
    script = re.sub(
        r"^kafkapy server stop$",
        "\n".join(f"kafkapy server stop --log-dir {directory}/{i}" for i in (1, 2)),
        script,
        flags=re.MULTILINE,
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_run_a_broker(tmp_path: Path) -> None:
    said = type_in(commands("README.md", "Run a broker"), tmp_path)
    assert "Created topic orders." in said
    assert "a\t1" in said
    assert said.count("Topic: orders\tPartition:") == 4


def test_several_brokers(tmp_path: Path) -> None:
    said = type_in(commands("docs/how-to/run-several-brokers.md", "By hand"), tmp_path)
    assert re.search(r"Partition: 0\tLeader: \d\tReplicas: \d,\d\tIsr: \d,\d", said)
