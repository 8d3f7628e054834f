"""A shell script of the commands that runbooks carry runs unchanged on our names for Kafka's
scripts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.processes.broker_group import BrokerGroup, running

ROOT = Path(__file__).parents[2]
RUNBOOK = ROOT / "tests/data/runbooks/since-0.8.sh"
SEGMENT = "tests/data/dump_log/logs/codec-none-0/00000000000000000000.log"
IDS = (4, 5, 6, 7)
LIMIT_S = 240


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerGroup]:
    directory = tmp_path_factory.mktemp("runbook")
    settings = {"offsets.topic.num.partitions": "1", "log.retention.ms": "-1"}
    yield from running(directory, IDS, settings)


@pytest.fixture(scope="module")
def said(group: BrokerGroup, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Output of the script, and its directory."""
    work = tmp_path_factory.mktemp("work")
    # A broker under test writes all its logs in one file; the merger passes the others over.
    logs = [f"{group.brokers[broker_id].log_dir}.out" for broker_id in (4, 5)]
    names = f"{ROOT}/scripts/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {
        **os.environ,
        "PATH": names,
        "Z": group.zookeeper.connect(),
        "B": group.bootstrap_servers,
        "D": str(work),
        "A": logs[0],
        "C": logs[1],
        "F": str(ROOT / SEGMENT),
    }
    done = subprocess.run(
        ["sh", str(RUNBOOK)], env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, work


def test_the_topic_is_made_changed_and_described(said: tuple[str, Path]) -> None:
    text, _ = said
    assert "Created topic topic1.\n" in text
    assert re.search(r"Topic: ?topic1\tPartitionCount: ?8\tReplicationFactor: ?3\t", text)
    assert "Updated config for topic topic1.\n" in text
    last = text.rindex("PartitionCount")
    assert "retention.ms=86400000" in text[last:]


def test_the_reassignment_ends_on_the_brokers_asked_for(said: tuple[str, Path]) -> None:
    text, work = said
    assert (work / "generated").read_text().count('"partitions"') == 2
    done = re.findall(r"Reassignment of partition (topic1-\d) (?:is complete|completed)", text)
    assert sorted(set(done)) == [f"topic1-{p}" for p in range(8)]


def test_the_logs_are_merged_and_dumped(said: tuple[str, Path]) -> None:
    _, work = said
    merged = (work / "merged").read_text().splitlines()
    assert merged
    assert all("topic1-0" in line or "topic1-1" in line for line in merged)
    assert merged == sorted(merged, key=lambda line: line[:24])
    assert "payload:" in (work / "dumped").read_text()


def test_what_was_written_is_read_and_committed(said: tuple[str, Path]) -> None:
    text, _ = said
    ends = re.findall(r"^topic1:\d:(\d)$", text, re.MULTILINE)
    assert sorted(ends) == ["0"] * 7 + ["1"]
    assert "\na line\n" in text
    assert re.search(r"^group1 +topic1 +\d +1 +1 +0 ", text, re.MULTILINE)


def test_the_replicas_are_compared_until_the_operator_has_seen_enough(
    said: tuple[str, Path],
) -> None:
    _, work = said
    assert "max lag is 0 for partition topic1-" in (work / "verified").read_text()
