"""Command lines for Kafka's tools and ours: a table, the steps between them, their output.

`tests/data/tools/commands.txt` is the table, one line each, in order:

    topics --list                   a tool and its words; --bootstrap-server is added
    !topics --list                  the same without --bootstrap-server
    ^acls --list                    needs a feature that only Apache Kafka's brokers have
    ~topics --describe              the order of the printed lines is not significant
    @produce TOPIC PARTITION COUNT  a step that is done through librdkafka, on both clusters

`{B}` is the bootstrap server, `{DIR}` a directory of the run. `scripts/conformance --record` writes
the output of Apache Kafka's tools to `record.json`; `differences.toml` has accepted differences.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from kafkapy.admin.share_groups import describe_share_group
from kafkapy.client.cluster import Cluster
from tests.harness.processes.waiting import wait_until

DATA: Final = Path(__file__).parents[2] / "data" / "tools"
COMMANDS: Final = DATA / "commands.txt"
RECORD: Final = DATA / "record.json"
DIFFERENCES: Final = DATA / "differences.toml"
_BOOTSTRAP_FIRST: Final = frozenset({"features", "transactions"})
_QUIET: Final = {"log_level": 0}


def _assert_delivered(error: KafkaError | None, _: Message) -> None:
    assert error is None, error


_CHECKED: Final[Mapping[str, Any]] = {"on_delivery": _assert_delivered}
_NO_MORE: Final[Mapping[str, str]] = {}
_LIMIT_S: Final = 30.0
# Records of a step are a second apart from here on: 2024-01-01T00:00:00.000Z.
FIRST_TIMESTAMP_MS: Final = 1_704_067_200_000
_MASKS: Final = (
    (re.compile(r"(?<=TopicId: )[A-Za-z0-9_-]{22}"), "<id>"),
    (re.compile(r"(?<=Cluster ID: )[A-Za-z0-9_-]{22}"), "<id>"),
    (re.compile(r"\b[\w-]+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<member>"),
    (re.compile(r'(?<="logDir":")[^"]*'), "<dir>"),
    (re.compile(r"\{B\d\} +\(\d\) +"), "<coordinator> "),
    (re.compile(r"(?m)^((?:open|done)-tx +\t)\d(?= +\t)"), r"\1<coordinator>"),
    (re.compile(r"(?m)^\d(?= +\t(?:open|done)-tx)"), "<coordinator>"),
    (re.compile(r"\b1[78]\d{11} *(?=\t)"), "<time>"),
    (re.compile(r"(?m)(000 +\t<time>\t)\d+ *(?=\t|$)"), r"\1<duration>"),
    (re.compile(r"/?\b127\.0\.0\.1(?![:\d])"), "<host>"),
)
_TRACE: Final = re.compile(r"\s+at [\w.$<>/]+.*|\s*\.\.\. \d+ more|\s*Caused by: .*")
_LOG: Final = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]+ .*")
_USAGE: Final = re.compile(r"Option +Description *|usage: .*")


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One line of the table."""

    text: str
    words: tuple[str, ...]
    unordered: bool = False
    apache_only: bool = False
    bootstrap: bool = True

    @property
    def is_step(self) -> bool:
        return self.words[0].startswith("@")

    def arguments(self, servers: str, directory: Path) -> list[str]:
        """The words after the tool's name, with the values of this cluster."""
        words = [w.replace("{B}", servers).replace("{DIR}", str(directory)) for w in self.words]
        if not self.bootstrap:
            return words[1:]
        bootstrap = ["--bootstrap-server", servers]
        # `kafka-transactions.sh` takes the options common to its commands before the command.
        first = self.words[0] in _BOOTSTRAP_FIRST
        return [*bootstrap, *words[1:]] if first else [*words[1:], *bootstrap]


def read_commands(path: Path = COMMANDS) -> list[ToolLine]:
    """The table in its order."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return [parse_line(line) for line in lines if line and not line.startswith("#")]


def parse_line(text: str) -> ToolLine:
    """One line of the table."""
    marks = text[: len(text) - len(text.lstrip("~!^"))]
    words = tuple(shlex.split(text[len(marks) :]))
    return ToolLine(
        text,
        words,
        unordered="~" in marks,
        apache_only="^" in marks,
        bootstrap="!" not in marks,
    )


class Steps:
    """The steps between command lines, done on one cluster; `close` ends live members."""

    def __init__(self, servers: str, directory: Path) -> None:
        self._servers = servers
        self._directory = directory
        self._members: list[Consumer | ShareConsumer] = []
        self._producers: list[Producer] = []

    def do(self, line: ToolLine) -> None:
        name, *words = (word.replace("{DIR}", str(self._directory)) for word in line.words)
        getattr(self, name.removeprefix("@"))(*words)

    def settle(self, topic: str, partitions: str) -> None:
        """Wait until all brokers have PARTITIONS partitions in their metadata, led and in sync."""

        def settled(address: str) -> bool:
            with Cluster(address) as cluster:
                found = cluster.metadata([topic]).topics[topic].partitions.values()
            in_sync = [p for p in found if p.leader >= 0 and set(p.isr) == set(p.replicas)]
            return len(in_sync) == int(partitions)

        addresses = self._servers.split(",")
        wait_until(lambda: all(map(settled, addresses)), f"{topic} is settled", _LIMIT_S)

    def placed(self, topic: str, partition: str, replicas: str) -> None:
        """Wait until all brokers have these replicas of a partition in their metadata, in sync."""
        wanted = tuple(map(int, replicas.split(",")))

        def there(address: str) -> bool:
            with Cluster(address) as cluster:
                found = cluster.metadata([topic]).topics[topic].partitions[int(partition)]
            return found.replicas == wanted and set(found.isr) == set(wanted)

        addresses = self._servers.split(",")
        wait_until(lambda: all(map(there, addresses)), f"{topic} is on {replicas}", _LIMIT_S)

    def produce(self, topic: str, partition: str, count: str, size_bytes: str = "0") -> None:
        """COUNT records of at least SIZE_BYTES bytes into one partition, a second apart."""
        producer = Producer({"bootstrap.servers": self._servers, **_QUIET})
        for index in range(int(count)):
            when = FIRST_TIMESTAMP_MS + index * 1000
            value = f"value {index}".ljust(int(size_bytes))
            producer.produce(topic, value, partition=int(partition), timestamp=when, **_CHECKED)
        assert producer.flush(_LIMIT_S) == 0

    def commit(self, group: str, *places: str) -> None:
        """TOPIC:PARTITION:OFFSET words become the group's committed offsets."""
        consumer = self._consumer(group, "committer")
        split = [place.rsplit(":", 2) for place in places]
        offsets = [TopicPartition(t, int(p), int(offset)) for t, p, offset in split]
        for done in consumer.commit(offsets=offsets, asynchronous=False) or []:
            assert done.error is None, done
        consumer.close()

    def member(self, group: str, topic: str, client_id: str, protocol: str = "classic") -> None:
        """A member that stays, until the end of the run."""
        consumer = self._consumer(group, client_id, {"group.protocol": protocol})
        consumer.subscribe([topic])

        def assigned() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(assigned, f"{client_id} in {group} has partitions", _LIMIT_S)
        self._members.append(consumer)

    def sharer(self, group: str, topic: str, client_id: str) -> None:
        """A member of a share group that stays, until the end of the run."""
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": group,
                "client.id": client_id,
                **_QUIET,
            }
        )
        consumer.subscribe([topic])
        self._members.append(consumer)

        def assigned() -> bool:
            consumer.poll(0.1)
            with Cluster(self._servers) as cluster:
                found = describe_share_group(cluster, group)
            return any(member.assignment for member in found.members)

        wait_until(assigned, f"{client_id} in {group} has partitions", _LIMIT_S)

    def begin(self, transactional_id: str, topic: str) -> None:
        """A transaction that is open, with one record, until the end of the run."""
        producer = self._transactional(transactional_id)
        producer.begin_transaction()
        producer.produce(topic, "in a transaction", partition=0, **_CHECKED)
        assert producer.flush(_LIMIT_S) == 0

    def committed(self, transactional_id: str, topic: str) -> None:
        """A transaction that is committed."""
        producer = self._transactional(transactional_id)
        producer.begin_transaction()
        producer.produce(topic, "in a transaction", partition=0, **_CHECKED)
        producer.commit_transaction(_LIMIT_S)

    def _transactional(self, transactional_id: str) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 600_000,
                **_QUIET,
            }
        )
        producer.init_transactions(_LIMIT_S)
        self._producers.append(producer)
        return producer

    def leave(self) -> None:
        """Close all members."""
        while self._members:
            self._members.pop().close()

    def file(self, name: str, *lines: str) -> None:
        """A file in {DIR} of these lines."""
        (self._directory / name).write_text("".join(f"{line}\n" for line in lines))

    close = leave

    def _consumer(self, group: str, client_id: str, more: Mapping[str, str] = _NO_MORE) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": group,
                "client.id": client_id,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **_QUIET,
                **more,
            }
        )


def masked(output: str, brokers: Sequence[str], directory: Path) -> list[str]:
    """Output lines with run-specific text masked; blank lines and JVM noise are dropped."""
    text = output.replace(",".join(brokers), "{B}").replace(str(directory), "{DIR}")
    for index, address in enumerate(brokers, 1):
        host, port = address.split(":")
        text = re.sub(rf"\b(localhost|{re.escape(host)}):{port}\b", f"{{B{index}}}", text)
    had_member = False
    for pattern, mask in _MASKS:
        text, count = pattern.subn(mask, text)
        had_member = had_member or (count > 0 and mask in ("<member>", "<coordinator> "))
    lines = list(_without_noise(text.splitlines()))
    # The width of a column depends on its contents.
    return [" ".join(line.split(" ")) if not had_member else _squeezed(line) for line in lines]


def _squeezed(line: str) -> str:
    return re.sub(r" {2,}", " ", line).rstrip()


def _without_noise(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if _USAGE.fullmatch(line):
            return
        if line.strip() and not _TRACE.fullmatch(line) and not _LOG.fullmatch(line):
            yield line.rstrip()
