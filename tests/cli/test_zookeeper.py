"""`kafkapy zookeeper`: the words it takes, and one real life in each of its two forms."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy.tools.zookeeper.process import four_letter_word, is_zookeeper, serves
from tests.harness.processes.broker_process import POLL_S, free_port
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.certificates import can_make, make_identity

LIMIT_S = 60


def start(*words: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: the server is to outlive the command."""
    command = [sys.executable, "-m", "kafkapy.cli.main", "zookeeper", "start", "--daemon", *words]
    return subprocess.run(
        [*command, "--output", "json"], capture_output=True, text=True, timeout=LIMIT_S
    )


def addresses_of(port: int) -> set[str]:
    """Where a port of this machine is listened on."""
    found = set()
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_ = row.split()
            address, _, at = local.partition(":")
            if state == "0A" and int(at, 16) == port:
                low = bytes.fromhex(address[-8:])[::-1]
                found.add(".".join(map(str, low)))
    return found


def test_it_must_be_told_what_to_do() -> None:
    outcome = kafkapy("zookeeper", "restart")
    assert outcome.status == 1
    assert "kafkapy zookeeper start|stop [zoo.cfg], or export|import FILE" in outcome.stderr
    outcome = kafkapy("zookeeper", "start", "a.cfg", "b.cfg")
    assert "Found non argument parameters: b.cfg" in outcome.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    outcome = kafkapy("zookeeper", "start", str(tmp_path / "zoo.cfg"))
    assert (outcome.status, outcome.stdout) == (1, "")
    assert f"Cannot read {tmp_path}/zoo.cfg" in outcome.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export",), "export needs a file, and either --zookeeper or --data-dir"),
        (("export", "f"), "export needs a file, and either --zookeeper or --data-dir"),
        (
            ("export", "f", "--zookeeper", "z:1", "--data-dir", "d"),
            "export needs a file, and either --zookeeper or --data-dir",
        ),
        (("import", "f"), 'Missing required argument "[zookeeper]"'),
        (("import", "--zookeeper", "z:1"), "import needs a file"),
        (("export", "f", "--data-dir", "/none"), "There is neither kafkapy-znodes nor"),
        (("import", "/none", "--zookeeper", "z:1"), "Cannot read /none"),
    ],
)
def test_a_transfer_needs_both_ends(words: tuple[str, ...], said: str) -> None:
    outcome = kafkapy("zookeeper", *words)
    assert (outcome.status, outcome.stdout) == (1, "")
    assert said in outcome.stderr


def test_nothing_to_stop_is_said_as_kafka_says_it(tmp_path: Path) -> None:
    for words in (("--data-dir", str(tmp_path)), ("--pid", str(os.getpid()))):
        outcome = kafkapy("zookeeper", "stop", *words)
        assert (outcome.status, outcome.stdout) == (1, "No zookeeper server to stop\n")


@pytest.mark.parametrize("choice", [(), ("--implementation", "apache")])
def test_started_in_the_background_it_serves_until_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: tuple[str, ...]
) -> None:
    monkeypatch.delenv("LOG_DIR", raising=False)
    data_dir, port = tmp_path / "data", free_port()
    file = tmp_path / "zoo.cfg"
    file.write_text(f"dataDir={data_dir}\nclientPort=1\n4lw.commands.whitelist=ruok\n")
    outcome = start(str(file), "--port", str(port), *choice)
    assert outcome.returncode == 0, outcome.stderr
    (row,) = json.loads(outcome.stdout)["data"]
    try:
        assert (row["host"], row["port"]) == ("127.0.0.1", port)
        assert row["output"] == str(data_dir / "zookeeper.out")
        assert is_zookeeper(row["pid"])
        assert addresses_of(port) == {"127.0.0.1"}
        assert serves("127.0.0.1", port)
        assert four_letter_word("127.0.0.1", port, "ruok") == "imok"
        again = start(str(file), "--port", str(free_port()), *choice)
        assert again.returncode == 1
        assert f"A ZooKeeper runs on {data_dir} already, with pid {row['pid']}" in again.stderr
    finally:
        stopped = kafkapy("zookeeper", "stop", str(file), "--output", "json")
    assert stopped.status == 0, stopped.stderr
    assert stopped.data == [{"stopped": row["pid"]}]
    assert not serves("127.0.0.1", port)


def test_with_tls_alone_it_starts_in_the_background(tmp_path: Path) -> None:
    if not can_make("TLS of kafkapy's ZooKeeper"):
        return
    identity = make_identity(tmp_path, "server")
    data_dir, port = tmp_path / "data", free_port()
    file = tmp_path / "zoo.cfg"
    file.write_text(
        f"dataDir={data_dir}\nsecureClientPort={port}\nssl.clientAuth=none\n"
        f"ssl.keyStore.location={identity}\n"
    )
    outcome = start(str(file))
    assert outcome.returncode == 0, outcome.stderr
    try:
        context = ssl.create_default_context(cafile=str(identity.with_suffix(".crt")))
        with (
            socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            secure.sendall(b"srvr")
            assert secure.recv(100).startswith(b"Zookeeper version:")
    finally:
        assert kafkapy("zookeeper", "stop", str(file)).status == 0
    said = (data_dir / "zookeeper.out").read_text()
    assert f"Serving at 127.0.0.1:{port};" in said
    assert "has no effect" not in said


def test_keys_without_effect_are_told(tmp_path: Path) -> None:
    data_dir, port = tmp_path / "data", free_port()
    file = tmp_path / "zoo.cfg"
    file.write_text(f"dataDir={data_dir}\nclientPort={port}\nadmin.enableServer=false\nfoo=1\n")
    outcome = start(str(file))
    assert outcome.returncode == 0, outcome.stderr
    assert kafkapy("zookeeper", "stop", str(file)).status == 0
    said = (data_dir / "zookeeper.out").read_text()
    assert said.count("has no effect on this server") == 2
    assert "admin.enableServer has no effect" in said


@pytest.mark.parametrize(
    ("implementation", "status"), [("kafkapy", 0), ("apache", 128 + signal.SIGTERM)]
)
def test_in_the_foreground_it_is_the_process_that_was_started(
    tmp_path: Path, implementation: str, status: int
) -> None:
    port = free_port()
    file = tmp_path / "zoo.cfg"
    file.write_text("clientPortAddress=127.0.0.1\n")
    words = ["zookeeper", "start", str(file), "--data-dir", str(tmp_path), "--port", str(port)]
    words += ["--implementation", implementation]
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkapy.cli.main", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(int(LIMIT_S / POLL_S)):
            if serves("127.0.0.1", port):
                break
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(POLL_S)
        stopped = kafkapy("zookeeper", "stop", "--data-dir", str(tmp_path), "--output", "json")
        assert stopped.data == [{"stopped": process.pid}]
        assert process.wait(LIMIT_S) == status
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
