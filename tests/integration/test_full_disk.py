"""A log directory that fills up goes offline; the others go on and nothing is corrupt."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.local import broker_processes as processes
from tests.conformance import kill_rounds
from tests.conftest import BrokerFactory
from tests.harness.faults.disk_scenarios import partitions_in
from tests.harness.plugins import unchecked
from tests.harness.processes.small_disks import can_mount, mount, mounted
from tests.harness.processes.topics import QUIET, create_topic
from tests.harness.processes.waiting import LIMIT_S

SMALL = "8m"
LARGE = "64m"
PARTITIONS = 4
TOPIC = "filling"


def write_until_refused(servers: str, acknowledged: list[list[int]]) -> set[int]:
    """Write 0, 1, 2, ... to each partition until one is refused; the refusing partitions."""
    refused: set[int] = set()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "message.timeout.ms": 8000, "linger.ms": 5, **QUIET}
    )

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        if error is None:
            value = int(message.value().split(b" ")[0])
            acknowledged[message.partition()].append(value)
        else:
            refused.add(message.partition())

    number = 0
    while not refused:
        for partition in range(PARTITIONS):
            value = b"%d %s" % (number, b"f" * 4000)
            producer.produce(TOPIC, value, partition=partition, on_delivery=delivered)
        number += 1
        if number % 100 == 0:
            producer.flush(60)
    producer.flush(60)
    return refused


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    with mounted(tmp_path / "small-disk", SMALL) as disk:
        yield disk


if can_mount():

    def test_full_disk_takes_only_its_directory_offline(
        broker_factory: BrokerFactory, tmp_path: Path, small_disk: Path
    ) -> None:
        ample = tmp_path / "ample"
        broker = broker_factory({"log.dirs": f"{ample},{small_disk}/logs"})
        servers = broker.bootstrap_servers
        create_topic(servers, TOPIC, PARTITIONS)
        directories = (small_disk / "logs", ample)
        full, others = (set(partitions_in(each, TOPIC)) for each in directories)
        assert full, "no partition was placed on the small disk"
        assert full | others == set(range(PARTITIONS))
        acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        assert write_until_refused(servers, acknowledged) <= full
        said = broker.output_text()
        assert f"{small_disk}/logs" in said
        assert "No space left on device" in said
        check_that_others_go_on(servers, others, acknowledged)
        assert broker.stop() in (0, 143)

        assert mount(small_disk, LARGE, "remount")
        broker.start()
        found = kill_rounds.read_everything(servers, TOPIC, PARTITIONS)
        for partition, records in enumerate(found):
            offsets = [offset for offset, _ in records]
            assert offsets == list(range(len(offsets)))
            assert set(acknowledged[partition]) <= {value for _, value in records}

    def check_that_others_go_on(
        servers: str, others: set[int], acknowledged: list[list[int]]
    ) -> None:
        """The other directory's partitions still take records."""
        producer = confluent_kafka.Producer({"bootstrap.servers": servers, **QUIET})
        errors: list[object] = []
        for partition in others:
            producer.produce(
                TOPIC, b"-1 after", partition=partition, on_delivery=lambda e, _: errors.append(e)
            )
            acknowledged[partition].append(-1)
        assert producer.flush(60) == 0
        assert errors == [None] * len(others)

    def fill(disk: Path) -> None:
        """Leave no block for the output of a broker."""
        (disk / processes.OUTPUT_FILE).touch()
        with pytest.raises(OSError, match="No space left"):
            (disk / "filler").write_bytes(bytes(1 << 24))

    def test_a_daemon_starts_although_the_disk_of_its_output_is_full(
        tmp_path: Path, small_disk: Path
    ) -> None:
        """The command waited without end for a line in the file, and Ctrl-C stopped the broker."""
        fill(small_disk)
        done = subprocess.run(
            [sys.executable, "-m", "kafkapy", "server", "start", "--daemon",
             f"--override=log.dirs={tmp_path}/l", "--override=listeners=PLAINTEXT://127.0.0.1:0"],
            env=os.environ | {"LOG_DIR": str(small_disk)},
            capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
        pid = processes.broker_of([f"{tmp_path}/l"])
        assert pid is not None
        assert done.stdout.startswith(f"Started the broker with pid {pid}; ")
        assert (small_disk / processes.OUTPUT_FILE).stat().st_size == 0
        assert processes.stop(pid, LIMIT_S)

    def test_a_daemon_that_ends_without_output_names_the_full_disk(
        small_disk: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LOG_DIR", str(small_disk))
        fill(small_disk)
        with pytest.raises(ConfigError, match=f"{small_disk}/.*: No space left on device"):
            processes.start_in_background(["/nope"], ["/nope"])

else:
    unchecked.note("a full disk", "needs root and mount")
