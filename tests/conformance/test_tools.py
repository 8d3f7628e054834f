"""Our tools beside Apache Kafka 3.9's: the same command lines, the same status and text.

What Kafka's printed is on record (`scripts/conformance --record`); ours run here, in this process,
against three kafkapy brokers. What may differ is in tests/data/tools/differences.toml.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.tools.tool_differences import Differences, Printed, read_record, run_ours
from tests.harness.tools.tool_lines import ToolLine, read_commands

BROKER_IDS = (1, 2, 3)
SETTINGS = {
    "auto.create.topics.enable": "false",
    # Its first round is seconds after the start, in the middle of the lines.
    "auto.leader.rebalance.enable": "false",
    # Records of the steps are older than a retention time: nobody is to delete them meanwhile.
    "log.initial.task.delay.ms": "86400000",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}

EVERY_LINE = [line for line in read_commands() if not line.is_step]
LINES = [line for line in read_commands() if not line.apache_only]
NUMBERED = [(index, line) for index, line in enumerate(LINES) if not line.is_step]
DIFFERENCES = Differences()


def theirs() -> dict[int, Printed]:
    """The record by the place in the table."""
    record = read_record()
    return {index: record[line.text].pop(0) for index, line in NUMBERED}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Printed]]:
    """Output of our tools by index in `LINES`: every line is run once, in order."""
    directory = tmp_path_factory.mktemp("tools")
    with BrokerGroup(directory / "cluster", BROKER_IDS, SETTINGS) as group:
        addresses = [broker.bootstrap_servers for broker in group.brokers.values()]
        yield run_ours(LINES, addresses, directory)


@pytest.mark.parametrize(
    ("index", "line"), NUMBERED, ids=[f"{index}-{line.text}" for index, line in NUMBERED]
)
def test_prints_what_kafkas_prints(ours: dict[int, Printed], index: int, line: ToolLine) -> None:
    complaint = DIFFERENCES.complaint(line, theirs()[index], ours[index])
    assert complaint is None, complaint


def test_the_record_is_of_this_table() -> None:
    kept = {text: len(printed) for text, printed in read_record().items()}
    asked: dict[str, int] = {}
    for line in EVERY_LINE:
        asked[line.text] = asked.get(line.text, 0) + 1
    assert kept == asked, "scripts/conformance --record"


def test_every_listed_difference_is_one() -> None:
    record = read_record()
    for text in DIFFERENCES.lines:
        line = next((each for each in EVERY_LINE if each.text == text), None)
        assert line is not None, f"no command {text}"
        assert any(DIFFERENCES.is_needed(line, printed) for printed in record[text]), text
    lines = [text for entries in record.values() for printed in entries for text in printed.lines]
    for pattern, _, _ in DIFFERENCES.rules:
        assert any(pattern.search(text) for text in lines), pattern
