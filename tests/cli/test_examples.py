"""The examples in the help of each command: every one is read by its command's own parser, and what
needs no more than a broker is run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from kafkapy.cli.framework.command import commands
from kafkapy.cli.framework.command_table import COMMANDS
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.scripted.cli import kafkapy

EXAMPLES = [
    (name, line)
    for name, command in commands().items()
    if command.name == name
    for _, line in command.example_lines()
]
# Commands, and parts of lines, that need more than a broker.
MORE = (
    *("kafkapy server", "kafkapy zookeeper", "kafkapy cluster start", "kafkapy cluster status"),
    *("kafkapy cluster kill", "kafkapy spark-submit", "kafkapy completion install"),
    *("/tmp/kafka-logs", "broker-1/", "kafkapy acls", "kafkapy delegation-tokens"),
    *("transactions abort", "forceTerminateTransaction", "--decommission 3"),
    "--election-type unclean",
    # Those go on until they are stopped.
    *("--topics-include", "agent.state app.log", "verifiable-share-consumer"),
    *("kafkapy schema-registry", "kafkapy schemas"),
)
# What others need is done first; a group is deleted when all is done.
FIRST = ("--create", "producer-perf", "console-consumer", "console-share-consumer")
LAST = ("consumer-groups", "share-groups")
ONE = [{"topic": "orders", "partition": 0}]
FILES = {
    "moves.json": {"version": 1, "partitions": [ONE[0] | {"replicas": [0]}]},
    "partitions.json": {"partitions": ONE},
    "offsets.json": {"version": 1, "partitions": [ONE[0] | {"offset": 1}]},
}


def run_lines() -> list[str]:
    """Those that need a broker only, in an order in which they find what they need."""
    lines = [line for _, line in EXAMPLES if not any(part in line for part in MORE)]

    def rank(line: str) -> int:
        found = [index for index, part in enumerate((*FIRST, "", *LAST)) if part and part in line]
        return found[0] if found else len(FIRST)

    return sorted(lines, key=rank)


@pytest.fixture(scope="module")
def place(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the examples, and records in their topic."""
    directory = tmp_path_factory.mktemp("examples")
    for name, content in FILES.items():
        (directory / name).write_text(json.dumps(content))
    (directory / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    for name in ("app.log", "other.log"):
        (directory / name).write_text("a line\n")
    return directory


@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_each_example_is_read_without_a_fault(name: str, line: str) -> None:
    kafkapy_, command, *words = shlex.split(line)
    assert (kafkapy_, command) == ("kafkapy", name)
    assert isinstance(commands()[name].read(words), commands()[name].options)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_sentence_examples_and_every_flag_in_a_group(name: str) -> None:
    command = commands()[name]
    assert 2 <= len(command.examples) <= 4
    assert all(about.endswith(".") for about in (command.help, *command.examples))
    sections = command.sections()
    assert "Options" not in sections
    listed = [spec for specs in sections.values() for spec in specs]
    assert sorted(listed) == sorted(command.specs())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_shows_the_examples_and_the_groups(name: str) -> None:
    shown = kafkapy(name, "--help").stdout
    joined = " ".join(shown.replace("\\\n", " ").split())
    command = commands()[name]
    for about, line in command.example_lines():
        assert f"{about} {line}" in joined
    for heading in command.sections():
        assert f"\n{heading}:\n" in shown


@pytest.mark.parametrize("line", run_lines())
def test_each_example_that_needs_only_a_broker_does_its_work(
    line: str, place: Path, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    words = shlex.split(line.replace("localhost:9092", broker.bootstrap_servers))
    done = kafkapy(*words[1:], stdin=b"7:a line\n")
    assert done.status == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "TimeoutException" not in line]
    assert not any("rror" in line for line in said), said
