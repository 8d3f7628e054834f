"""Reassignments, elections, log directories and deletions on brokers that run, and on some that
stop running."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.processes.broker_group import BrokerGroup, running
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.kafkapy_process import Kafkapy
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import Outcome, kafkapy

LIMIT_S = 30.0
RECORDS = 2500  # more than one fetch of 1 MiB: the first is never throttled
RECORD = "x" * 1000
SLOW = "1000"
"""Bytes a second: no partition with data gets anywhere within a test."""


class Tools:
    """Commands on the group; files in a directory."""

    def __init__(self, group: BrokerGroup, directory: Path) -> None:
        self.group = group
        self.directory = directory

    def __call__(self, command: str, *words: str) -> Outcome:
        servers = ("--bootstrap-server", self.group.bootstrap_servers)
        return kafkapy(command, *servers, *words)

    def create(self, topic: str, assignment: str, *, records: int = 0) -> None:
        made = self("topics", "--create", "--topic", topic, "--replica-assignment", assignment)
        assert made.status == 0, made
        for broker in self.group.brokers.values():
            if broker.running:
                words = ("--bootstrap-server", broker.bootstrap_servers, "--topic", topic)
                wait_until(
                    lambda words=words: kafkapy("topics", *words, "--describe").status == 0,
                    f"{broker.name} knows {topic}",
                )
        if records:
            process = Kafkapy(self.group.bootstrap_servers)
            lines = "".join(f"{n} {RECORD}\n" for n in range(records))
            sent = process("console-producer", "--topic", topic, stdin=lines)
            assert sent.returncode == 0, sent

    def file(self, topic: str, *targets: list[int]) -> tuple[str, str]:
        path = self.directory / f"{topic}.json"
        rows = [{"topic": topic, "partition": p, "replicas": r} for p, r in enumerate(targets)]
        path.write_text(json.dumps({"version": 1, "partitions": rows}))
        return "--reassignment-json-file", str(path)

    def offsets(self, topic: str) -> list[str]:
        return self("get-offsets", "--topic", topic).stdout.splitlines()

    def replicas(self, topic: str) -> dict[int, list[int]]:
        (found,) = self("topics", "--describe", "--topic", topic, "--output", "json").data
        return {row["partition"]: row["replicas"] for row in found["partitions"]}

    def throttles(self, topic: str) -> list[str]:
        """Dynamic configs of the topic and of the live brokers."""
        found = self("configs", "--describe", "--topic", topic, "--output", "json").data
        live = [str(b) for b, process in self.group.brokers.items() if process.running]
        for broker_id in live:
            words = ("--describe", "--broker", broker_id, "--output", "json")
            found += self("configs", *words).data
        return [config["name"] for entity in found for config in entity["configs"]]

    def settled(self, file: tuple[str, str]) -> None:
        """Wait until everything is where the file says."""
        wait_until(
            lambda: self("reassign", "--verify", "--strict", *file).status == 0,
            f"{file[1]} carried out",
            LIMIT_S,
        )


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerGroup]:
    settings = {
        "auto.leader.rebalance.enable": "false",
        "zookeeper.session.timeout.ms": "3000",
        "replica.lag.time.max.ms": "3000",
    }
    yield from running(tmp_path_factory.mktemp("reassign"), (1, 2, 3, 4), settings)


@pytest.fixture
def tools(group: BrokerGroup, tmp_path: Path) -> Tools:
    return Tools(group, tmp_path)


def test_a_plan_is_carried_out_in_batches_and_nothing_is_lost(tools: Tools) -> None:
    tools.create("spread", "1:2,2:1,1:2,2:1", records=RECORDS)
    before = tools.offsets("spread")
    topics = tools.directory / "topics.json"
    topics.write_text('{"topics":[{"topic":"spread"}],"version":1}')
    words = ("--generate", "--strategy", "minimal", "--topics-to-move-json-file", str(topics))
    planned = tools("reassign", *words)
    assert "4 replicas to copy" in planned.stderr
    assert "replicas by broker: 2; preferred leaders by broker: 1\n" in planned.stderr
    plan = tools.directory / "plan.json"
    plan.write_text(planned.stdout.splitlines()[-1])
    file = ("--reassignment-json-file", str(plan))
    limit = ("--throttle", "50000000", "--batch-size", "2")
    done = tools("reassign", "--execute", *limit, *file)
    assert done.status == 0, done
    assert done.stderr.splitlines()[-1] == "4 of 4 partitions moved"
    assert tools("reassign", "--verify", "--strict", *file).status == 0
    assert tools.throttles("spread") == []
    assert tools.offsets("spread") == before
    assert sum(int(line.rpartition(":")[2]) for line in before) == RECORDS
    again = tools("reassign", *words)
    assert again.stderr.startswith("0 partitions changed, 0 replicas to copy (0 B)")


def test_the_words_of_a_slow_move(tools: Tools) -> None:
    tools.create("slow", "1", records=RECORDS)
    file = tools.file("slow", [1, 2])
    begun = tools("reassign", "--execute", "--throttle", SLOW, *file)
    assert begun.stdout.splitlines()[-1] == (
        "Successfully started partition reassignment for slow-0"
    )
    assert "slow-0: replicas: 1,2. adding: 2.\n" in tools("reassign", "--list").stdout
    moving = tools("reassign", "--verify", "--strict", *file)
    assert moving.stdout == (
        "Status of partition reassignment:\n"
        "Reassignment of partition slow-0 is still in progress.\n\n"
    )
    assert moving.status == 1
    other = tools("reassign", "--execute", *file)
    assert other.stderr.startswith("Cannot execute because there is an existing partition assig")
    cancelled = tools("reassign", "--cancel", *file)
    assert cancelled.stdout.startswith(
        "Successfully cancelled partition reassignment for: slow-0\n"
        "None of the specified partition moves are active.\n"
    )
    assert tools.throttles("slow") == []
    assert tools.replicas("slow") == {0: [1]}


def test_the_throttle_of_a_move_is_raised_while_it_runs(tools: Tools) -> None:
    tools.create("raised", "1", records=RECORDS)
    file = tools.file("raised", [2])
    tools("reassign", "--execute", "--throttle", SLOW, *file)
    assert tools("reassign", "--verify", "--strict", *file).status == 1
    tools("reassign", "--execute", "--throttle", "100000000", "--additional", *file)
    watched = tools("reassign", "--verify", "--watch", "--strict", *file)
    assert watched.status == 0, watched
    assert tools.throttles("raised") == []


def start(tools: Tools, *words: str) -> subprocess.Popen[str]:
    """`kafkapy reassign` as a process of its own."""
    command = Kafkapy(tools.group.bootstrap_servers).command("reassign", *words)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def is_moving(tools: Tools, partition: str) -> bool:
    return f"{partition}: " in tools("reassign", "--list").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_the_same_command_continues(
    tools: Tools, number: signal.Signals
) -> None:
    # Of each partition more than one fetch: some runs gave one of them less than 1 MiB.
    topic = f"broken-by-{number.name}"
    tools.create(topic, "1,1", records=2 * RECORDS)
    file = tools.file(topic, [2], [2])
    words = ("--execute", "--batch-size", "1", "--throttle")
    with start(tools, *words, SLOW, *file) as process:
        wait_until(lambda: is_moving(tools, f"{topic}-0"), f"{topic}-0 moving", LIMIT_S)
        process.send_signal(number)
        assert process.stderr is not None
        while "A second signal stops at once" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(number)
        _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + number, said
    assert "The same command continues" in said
    assert "Traceback" not in said
    assert is_moving(tools, f"{topic}-0")
    continued = tools("reassign", *words, "100000000", *file)
    assert continued.status == 0, continued
    assert tools.replicas(topic) == {0: [2], 1: [2]}
    assert tools.throttles(topic) == []


def test_a_destination_that_dies_ends_the_wait_and_cancel_ends_the_throttle(tools: Tools) -> None:
    tools.create("dead", "1", records=RECORDS)
    file = tools.file("dead", [1, 4])
    words = ("--execute", "--batch-size", "1", "--throttle", SLOW, "--timeout", "500")
    with start(tools, *words, *file) as process:
        wait_until(lambda: is_moving(tools, "dead-0"), "dead-0 moving", LIMIT_S)
        tools.group.brokers[4].kill()
        _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert "Gave up waiting for dead-0: broker 4 is not alive." in said
    # The copy goes on as soon as the broker is back: no faster than before.
    assert "Partitions still move: the throttles stay until --verify." in said
    assert tools.throttles("dead") != []
    unknown = tools("reassign", "--execute", "--additional", *file)
    assert unknown.stderr == "Error: Unknown broker id 4\n"
    # Nobody waits for a broker that is down: not to look, not to take the move back.
    assert "still in progress" in tools("reassign", "--verify", *file).stdout
    cancelled = tools("reassign", "--cancel", *file)
    assert cancelled.stdout.startswith("Successfully cancelled partition reassignment for: dead-0")
    assert tools.throttles("dead") == []
    tools.group.start(4)


def test_an_election_brings_the_preferred_leader_back(tools: Tools) -> None:
    tools.create("led", "1:2")
    file = tools.file("led", [2, 1])
    assert tools("reassign", "--execute", *file).status == 0
    tools.settled(file)
    words = ("--election-type", "preferred", "--topic", "led", "--partition", "0")
    assert tools("leader-election", *words).stdout == (
        "Successfully completed leader election (PREFERRED) for partitions led-0\n"
    )
    assert tools("leader-election", *words).stdout == (
        "Valid replica already elected for partitions led-0\n"
    )
    unknown = tools("leader-election", *words[:-1], "7")
    assert unknown.stdout == (
        "Error completing leader election (PREFERRED) for partition: led-7:"
        " org.apache.kafka.common.errors.UnknownTopicOrPartitionException: The partition does not"
        " exist.\n"
    )
    assert (unknown.stderr, unknown.status) == ("1 replica(s) could not be elected\n", 1)


def test_records_are_deleted_and_directories_described(tools: Tools) -> None:
    tools.create("cut", "1:2", records=10)
    offsets = tools.directory / "offsets.json"
    rows = [{"topic": "cut", "partition": p, "offset": 4} for p in (0, 1)]
    offsets.write_text(json.dumps({"version": 1, "partitions": rows}))
    cut = tools("delete-records", "--offset-json-file", str(offsets))
    assert cut.stdout == (
        "Executing records delete operation\n"
        "Records delete operation completed:\n"
        "partition: cut-0\tlow_watermark: 4\n"
        "partition: cut-1\terror: org.apache.kafka.common.errors.UnknownTopicOrPartitionException:"
        " This server does not host this topic-partition.\n"
    )
    assert tools("get-offsets", "--topic", "cut", "--time", "earliest").stdout == "cut:0:4\n"
    described = tools("log-dirs", "--describe", "--topic-list", "cut", "--broker-list", "1,3")
    line = described.stdout.splitlines()[-1]
    first, other = json.loads(line)["brokers"]
    (held,) = first["logDirs"][0]["partitions"]
    assert (held["partition"], held["offsetLag"], held["isFuture"]) == ("cut-0", 0, False)
    assert held["size"] > 10 * len(RECORD)
    assert other == {"broker": 3, "logDirs": [{**other["logDirs"][0], "partitions": []}]}


def test_replicas_move_between_directories_while_records_come(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("jbod")
    first, second = root / "first", root / "second"
    with BrokerProcess(first, {"log.dirs": f"{first},{second}"}) as broker:
        process = Kafkapy(broker.bootstrap_servers)
        process("topics", "--create", "--topic", "moved", "--partitions", "1")
        lines = "".join(f"{n} {RECORD}\n" for n in range(RECORDS))
        process("console-producer", "--topic", "moved", stdin=lines)
        path = root / "moves.json"
        place = second if (first / "moved-0").is_dir() else first
        other = first if place is second else second
        row = {"topic": "moved", "partition": 0, "replicas": [0], "log_dirs": [str(place)]}
        path.write_text(json.dumps({"partitions": [row]}))
        file = ("--reassignment-json-file", str(path))
        words = ("--execute", "--replica-alter-log-dirs-throttle", "1000")
        begun = process("reassign", *words, *file)
        assert begun.stdout.splitlines()[-1] == (
            f"Successfully started moving log directory to {place} for replica moved-0 with"
            " broker 0 "
        )
        verify = process("reassign", "--verify", *file).stdout.splitlines()
        assert verify[-1] == "Reassignment of replica moved-0-0 is still in progress."
        described = process("log-dirs", "--describe", "--topic-list", "moved").stdout
        dirs = json.loads(described.splitlines()[-1])["brokers"][0]["logDirs"]
        state = {d["logDir"]: p["isFuture"] for d in dirs for p in d["partitions"]}
        assert state == {str(place): True, str(other): False}
        process("console-producer", "--topic", "moved", stdin="late\n")
        faster = ("--replica-alter-log-dirs-throttle", "100000000", "--additional")
        process("reassign", "--execute", *faster, *file)
        wait_until(
            lambda: process("reassign", "--verify", "--strict", *file).returncode == 0,
            "moved-0 in its new directory",
            LIMIT_S,
        )
        assert (place / "moved-0").is_dir()
        assert not (other / "moved-0").exists()
        process("console-producer", "--topic", "moved", stdin="later\n")
        broker.kill()
        broker.start()
        words = ("--topic", "moved", "--from-beginning", "--max-messages", str(RECORDS + 2))
        read = process("console-consumer", *words).stdout.splitlines()
        numbers = [line.split()[0] for line in read]
        assert numbers == [*map(str, range(RECORDS)), "late", "later"]
