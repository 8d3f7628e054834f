"""`kafkapy delete-records`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster
from tests.harness.scripted.scripted_topics import describing_cluster

TWO = (
    '{"version":1,"partitions":[{"topic":"t","partition":0,"offset":5},'
    '{"topic":"plain","partition":0,"offset":900}]}'
)
DONE = (
    "Executing records delete operation\nRecords delete operation completed:\n"
    "partition: t-0\tlow_watermark: 5\n"
    "partition: plain-0\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: The"
    " requested offset is not within the range of offsets maintained by the server.\n"
)
ANSWER = DeleteRecordsResponse(
    topics=[
        DeleteRecordsTopicResult(
            name="t", partitions=[DeleteRecordsPartitionResult(low_watermark=5)]
        ),
        DeleteRecordsTopicResult(
            name="plain",
            partitions=[
                DeleteRecordsPartitionResult(
                    low_watermark=-1, error_code=ErrorCode.OFFSET_OUT_OF_RANGE
                )
            ],
        ),
    ]
)


def delete(directory: Path, text: str, *words: str) -> tuple[Outcome, ScriptedCluster]:
    (directory / "offsets").write_text(text)
    cluster = describing_cluster(DELETE_RECORDS=ANSWER)
    file = ("--offset-json-file", str(directory / "offsets"))
    servers = ("--bootstrap-server", "b:1")
    return kafkapy("delete-records", *servers, *file, *words, cluster=cluster), cluster


def test_rows_and_status(tmp_path: Path) -> None:
    outcome, _ = delete(tmp_path, TWO)
    assert (outcome.stdout, outcome.stderr, outcome.status) == (DONE, "", 0)
    strict, _ = delete(tmp_path, TWO, "--strict")
    assert (strict.stdout, strict.status) == (DONE, 1)


def test_what_is_deleted_is_printed_after_an_interrupt(tmp_path: Path) -> None:
    """While the command waits for the leader of another partition."""

    def answer(request: Any, port: int) -> DeleteRecordsResponse:
        if request.topics[0].partitions[0].partition_index == 0:
            return ANSWER
        raise KeyboardInterrupt

    (tmp_path / "offsets").write_text(
        '{"partitions":[{"topic":"t","partition":0,"offset":5},'
        '{"topic":"t","partition":1,"offset":5}]}'
    )
    cluster = describing_cluster(DELETE_RECORDS=answer)
    words = ("--bootstrap-server", "b:1", "--offset-json-file", str(tmp_path / "offsets"))
    outcome = kafkapy("delete-records", *words, cluster=cluster)
    assert "partition: t-0\tlow_watermark: 5\n" in outcome.stdout
    assert outcome.status == 130


def test_json(tmp_path: Path) -> None:
    outcome, _ = delete(tmp_path, TWO, "--output", "json")
    assert [(row["low_watermark"], row["error"]) for row in outcome.data] == [
        (5, None),
        (None, "OFFSET_OUT_OF_RANGE"),
    ]


def test_a_dry_run_deletes_nothing(tmp_path: Path) -> None:
    outcome, cluster = delete(tmp_path, TWO, "--dry-run")
    assert outcome.stdout.startswith("Would send DeleteRecords v2 to broker 1: {")
    assert '"offset":900' in outcome.stdout
    assert cluster.requests_of(ApiKey.DELETE_RECORDS) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "The input string is not a valid JSON (line 1, column 2: "),
        ("{}", "Missing partitions field\n"),
        ('{"version":2}', "Not supported version field value 2\n"),
    ],
)
def test_a_malformed_file(tmp_path: Path, text: str, said: str) -> None:
    outcome, cluster = delete(tmp_path, text)
    assert outcome.stderr.startswith(said)
    assert (outcome.status, cluster.requests) == (1, [])


def test_flags() -> None:
    assert kafkapy("delete-records", "--bootstrap-server", "b:1").stderr.startswith(
        'Missing required argument "[offset-json-file]"'
    )
