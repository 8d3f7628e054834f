"""`kafkapy server` as an operator uses it: in the background, by directory, twice."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy.storage.embedded_store_file import EMBEDDED_STORE_FILE
from kafkapy.tools.local.broker_processes import broker_of
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.kafkapy_process import Kafkapy

EXECUTABLE = str(Path(sys.executable).parent / "kafkapy")


def server(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EXECUTABLE, "server", *words], capture_output=True, text=True, timeout=120
    )


def test_start_in_the_background_use_and_stop(tmp_path: Path) -> None:
    log_dir, port = tmp_path / "logs", free_port()
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={log_dir}\nlisteners=PLAINTEXT://127.0.0.1:{port}\n")
    started = server("start", str(file), "--daemon")
    try:
        assert started.stdout.startswith("Started the broker with pid "), started
        listed = Kafkapy(f"127.0.0.1:{port}")("topics", "--list")
        assert (listed.stdout, listed.returncode) == ("\n", 0)
        second = server("start", str(file), "--daemon")
        assert second.returncode == 1
        assert "ended with status 1" in second.stderr
    finally:
        stopped = server("stop", str(file))
    assert (stopped.stdout, stopped.stderr, stopped.returncode) == ("", "", 0)
    assert server("stop", str(file)).stdout == "No kafka server to stop\n"
    assert not (log_dir / "kafkapy.pid").exists()


def test_a_broker_whose_embedded_store_is_lost_does_not_start_without_its_topics(
    tmp_path: Path,
) -> None:
    """It started with none. A topic that was created again could not have its old log."""
    log_dir, port = tmp_path / "logs", free_port()
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={log_dir}\nlisteners=PLAINTEXT://127.0.0.1:{port}\n")
    store, copy = log_dir / EMBEDDED_STORE_FILE, tmp_path / "copy"
    assert server("start", str(file), "--daemon").returncode == 0
    try:
        created = Kafkapy(f"127.0.0.1:{port}")("topics", "--create", "--topic", "t")
        assert created.returncode == 0
    finally:
        assert server("stop", str(file)).returncode == 0
    store.rename(copy)
    for _ in range(2):
        refused = server("start", str(file), "--daemon")
        assert refused.returncode == 1
        assert "does not match the stored cluster id" in refused.stderr
        assert "restore it from a copy" in refused.stderr
    copy.rename(store)
    assert server("start", str(file), "--daemon").returncode == 0
    try:
        assert Kafkapy(f"127.0.0.1:{port}")("topics", "--list").stdout == "t\n"
    finally:
        assert server("stop", str(file)).returncode == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [("listeners", "PLAINTEXT://127.0.0.1:{port}"), ("kafkapy.metrics.port", "{port}")],
)
def test_a_port_that_is_taken_is_told_with_who_has_it(tmp_path: Path, key: str, value: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        given = {"listeners": "PLAINTEXT://127.0.0.1:0", key: value.format(port=port)}
        words = [f"--override={name}={text}" for name, text in given.items()]
        done = server("start", "--daemon", f"--override=log.dirs={tmp_path}", *words)
    assert done.returncode == 1
    said, hint = done.stderr.splitlines()[-2:]
    assert hint.strip().startswith("Hint: stop that process, or choose another port")
    assert f"cannot be bound: Address already in use by process {os.getpid()} (" in said
    assert str(port) in said
    assert "Awaiting socket connections" not in done.stderr
    assert broker_of([str(tmp_path)]) is None


def test_a_bad_property_names_key_value_and_what_is_allowed(tmp_path: Path) -> None:
    done = server("start", "--override", f"log.dirs={tmp_path}", "--override", "num.io.threads=x")
    assert done.returncode == 1
    assert "num.io.threads" in done.stderr
    assert "x" in done.stderr
    assert "Traceback" not in done.stderr
