"""The package runs from any directory: below one of its own name, with blanks, not in ASCII."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.harness.processes.broker_process import free_port
from tests.harness.processes.layered_venv import make_layered_venv

ROOT = Path(__file__).parents[2]
LIMIT_S = 120


class Checkout:
    """A copy of the sources with an environment of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT / "kafkapy", root / "kafkapy")
        shutil.copytree(ROOT / "scripts" / "bin", root / "scripts" / "bin")
        shutil.copy(ROOT / "pyproject.toml", root)
        self._executable = make_layered_venv(root)

    def __call__(self, *words: str, stdin: str = "") -> str:
        """Output of `kafkapy` with these arguments."""
        return self.run([str(self._executable), *words], stdin)

    def run(self, command: list[str], stdin: str = "") -> str:
        """Output of a command in the environment of a bare container, without a locale."""
        environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            env=environment,
        )
        assert done.returncode == 0, (command, done)
        return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    directory = tmp_path_factory.mktemp("x") / "kafkapy" / "späte Brötchen" / "kafkapy"
    directory.mkdir(parents=True)
    return Checkout(directory)


def test_a_broker_is_started_used_and_stopped(checkout: Checkout) -> None:
    log_dir, port = checkout.root / "logs ü", free_port()
    words = ("--override", f"log.dirs={log_dir}")
    listener = ("--override", f"listeners=PLAINTEXT://127.0.0.1:{port}")
    where = ("--bootstrap-server", f"127.0.0.1:{port}", "--topic", "orders")
    [started] = json.loads(
        checkout("server", "start", *words, *listener, "--daemon", "--output", "json")
    )["data"]
    try:
        topics = str(checkout.root / "scripts" / "bin" / "kafka-topics.sh")
        assert checkout.run([topics, "--create", *where]) == "Created topic orders.\n"
        checkout("console-producer", *where, stdin="späte Brötchen\n")
        read = checkout("console-consumer", *where, "--from-beginning", "--max-messages", "1")
        assert read == "späte Brötchen\n"
    finally:
        stopped = checkout("server", "stop", "--pid", str(started["pid"]), "--output", "json")
    assert json.loads(stopped)["data"] == [{"stopped": started["pid"]}]


def test_a_cluster_is_started_killed_and_stopped(checkout: Checkout) -> None:
    where = ("--dir", str(checkout.root / "clüster"))

    def state() -> Any:
        [found] = json.loads(checkout("cluster", "status", *where, "--output", "json"))["data"]
        return found

    checkout("cluster", "start", *where, "--brokers", "1", "--base-port", "0")
    try:
        [broker] = state()["brokers"]
        assert (
            checkout("cluster", "kill", "1", *where) == f"Broker 1: killed (pid {broker['pid']})\n"
        )
        assert state()["brokers"][0]["alive"] is False
        assert checkout("cluster", "restart", "1", *where).startswith("Broker 1: started at ")
    finally:
        stopped = checkout("cluster", "stop", *where)
    assert [line.split(" (")[0] for line in stopped.splitlines()] == [
        "Broker 1: stopped",
        "ZooKeeper: stopped",
    ]
    assert state()["zookeeper"]["pid"] is None
