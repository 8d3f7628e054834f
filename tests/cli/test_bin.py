"""The drop-in names: `kafka-topics.sh` and its sisters call kafkapy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dev.conformance.record_flags import SCRIPTS
from kafkapy import __version__
from kafkapy.cli.framework.drop_in_names import DROP_IN
from tests.harness.processes.waiting import wait_until

SINCE_KAFKA_4 = {
    "kafka-console-share-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-groups.sh": "org.apache.kafka.tools.GroupsCommand",
    "kafka-share-groups.sh": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-verifiable-share-consumer.sh": "org.apache.kafka.tools.VerifiableShareConsumer",
}
BIN = Path(__file__).parents[2] / "scripts" / "bin"
NAMES = {path.name: path for path in sorted(BIN.glob("*.sh"))}
USAGE = "[-daemon] server.properties [--override property=value]*\n"


def run(name: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [NAMES[name], *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, **env},
        timeout=60,
    )


def test_all_of_them_are_there_and_executable() -> None:
    assert set(NAMES) == {*DROP_IN, "kafka-run-class.sh"}
    assert all(os.access(path, os.X_OK) for path in NAMES.values())


@pytest.mark.parametrize("name", sorted(NAMES.keys() - {"kafka-run-class.sh"}))
def test_they_answer(name: str) -> None:
    done = run(name, "--version")
    assert (done.stdout, done.stderr, done.returncode) == (f"{__version__}\n", "", 0)


def test_words_and_status_pass_through() -> None:
    done = run("kafka-topics.sh", "--create", "--topic", "a b", "-bootstrap-server", "x")
    assert done.returncode == 1
    assert "Invalid url in bootstrap.servers: x" in done.stderr


def test_start_without_a_file_is_kafkas_usage_line() -> None:
    usages = {
        "kafka-server-start.sh": USAGE,
        "zookeeper-server-start.sh": "[-daemon] zookeeper.properties\n",
    }
    for name, usage in usages.items():
        for words in ((), ("-daemon",)):
            done = run(name, *words)
            assert (done.returncode, done.stderr) == (1, "")
            assert done.stdout.endswith(usage)
    for words in (("-daemon", "kafka.Kafka"), ("kafka.Kafka", "--override", "broker.id=1")):
        done = run("kafka-run-class.sh", *words)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.endswith(USAGE.partition("] ")[2])


def test_start_takes_the_environment_of_kafkas_script(tmp_path: Path) -> None:
    file, jaas = tmp_path / "server.properties", tmp_path / "jaas.conf"
    file.write_text("listeners=PLAINTEXT://127.0.0.1:0\n")
    env = {"KAFKA_OPTS": f"-Djava.security.auth.login.config={jaas}", "KAFKA_HEAP_OPTS": "-Xmx1g"}
    done = run("kafka-server-start.sh", str(file), **env)
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.splitlines() == [
        "Without effect, because there is no JVM here: KAFKA_HEAP_OPTS",
        f"java.security.auth.login.config={jaas} cannot be read: No such file or directory",
    ]


def test_zookeeper_is_stopped_where_its_data_is() -> None:
    done = run("zookeeper-server-stop.sh", "--data-dir", "/nope")
    assert (done.stdout, done.returncode) == ("No zookeeper server to stop\n", 1)


def test_server_stop_takes_the_signal_from_the_environment() -> None:
    done = run("kafka-server-stop.sh", "--log-dir", "/nope", SIGNAL="KILL")
    assert (done.stdout, done.returncode) == ("No kafka server to stop\n", 1)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kafka.tools.DumpLogSegments", 'Missing required argument "[files]"'),
        ("kafka.tools.StateChangeLogMerger", "Provide arguments to exactly one of the two options"),
        ("org.apache.kafka.tools.ReplicaVerificationTool", 'Missing required argument "[broker-li'),
        ("kafka.admin.TopicCommand", "Command must include exactly one action"),
        ("kafka.Kafka", "Cannot read /nope"),
        ("org.apache.zookeeper.server.quorum.QuorumPeerMain", "Cannot read /nope"),
        ("kafka.tools.MirrorMaker", "kafkapy has no tool for the class kafka.tools.MirrorMaker"),
    ],
)
def test_run_class_finds_the_tool_of_a_class(name: str, said: str) -> None:
    file = ["/nope"] if "Kafka" in name or "Quorum" in name else []
    done = run("kafka-run-class.sh", "-loggc", "-name", "x", name, "--output", "text", *file)
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith(said)


def test_run_class_finds_the_tools_of_all_scripts(tmp_path: Path) -> None:
    stand_in = tmp_path / "kafkapy"
    stand_in.write_text('#!/bin/sh\necho "$@"\n')
    stand_in.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    classes = {name: SCRIPTS[name][0].java_class for name in NAMES.keys() & SCRIPTS.keys()}
    for name, java_class in sorted((classes | SINCE_KAFKA_4).items()):
        if java_class:
            by_class = run("kafka-run-class.sh", java_class, "--help", PATH=path)
            assert by_class.stdout == run(name, "--help", PATH=path).stdout


def test_zookeepers_shell_by_its_class_takes_the_server_as_kafkas_script_passes_it() -> None:
    words = ("-server", "127.0.0.1:2181", "-zk-tls-config-file")
    done = run("kafka-run-class.sh", "org.apache.zookeeper.ZooKeeperMain", *words)
    assert done.stderr.startswith("-zk-tls-config-file needs a file")


def test_run_class_in_the_background_writes_to_the_file_of_its_name(tmp_path: Path) -> None:
    words = ("-daemon", "-name", "dump", "kafka.tools.DumpLogSegments", "--version")
    done = run("kafka-run-class.sh", *words, LOG_DIR=str(tmp_path / "logs"))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    output = tmp_path / "logs" / "dump.out"
    said = f"{__version__}\n"
    wait_until(lambda: output.exists() and output.read_text() == said, "the output of the tool")


def test_run_class_without_a_class_is_kafkas_usage_line() -> None:
    done = run("kafka-run-class.sh")
    assert done.stdout.endswith("[-daemon] [-name servicename] [-loggc] classname [opts]\n")
    assert (done.stderr, done.returncode) == ("", 1)
