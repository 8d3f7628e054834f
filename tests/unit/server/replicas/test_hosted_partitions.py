"""Hosted partitions know who lives, and a directory that fails is told to the controller once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.delayed_fetch import FetchParams
from kafkapy.replication.fetch_session import FetchPartition, FetchResult
from kafkapy.replication.partition import Partition
from kafkapy.replication.purgatory import DelayedOperation
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.partitions import TOPIC_ID, batch, partition_state


def test_who_lives_is_what_the_metadata_says(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    hosted = parts.replicas
    partition = parts.lead(isr=(1, 2))
    assert not hosted.is_live(2)
    assert not partition.is_live(2)
    parts.announce("t")
    assert hosted.is_live(2)
    assert partition.is_live(2)
    assert sorted(hosted.live_brokers) == [1, 2]


def test_the_controller_is_told_of_a_failed_directory_but_not_of_the_last(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "a", tmp_path / "b")
    heard: list[str] = []
    parts.replicas.on_log_dir_failure = lambda: heard.append("controller")
    parts.replicas.on_fatal = lambda failure: heard.append("fatal")
    for name in ("a", "a", "b"):
        parts.replicas.log_dir_failed(LogDirFailure(str(tmp_path / name), "gone"))
    assert heard == ["controller", "fatal"]


def test_a_replica_that_may_be_in_an_offline_directory_is_not_made_again(tmp_path: Path) -> None:
    """It would be empty, and could be elected."""
    parts = Parts(tmp_path / "a", tmp_path / "b")
    parts.announce("t")
    parts.replicas.log_dir_failed(LogDirFailure(str(tmp_path / "a"), "gone"))
    row = partition_state(isr=(1, 2), leader_epoch=4)
    row.is_new = False
    key = TopicPartition("t", 0)
    assert parts.apply_leader_and_isr(row).partition_errors == {key: ErrorCode.KAFKA_STORAGE_ERROR}
    assert parts.replicas.offline == {key}
    with pytest.raises(ApiError) as refused:
        parts.replicas.get("t", 0)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not (tmp_path / "b" / "t-0").exists()
    assert parts.apply_leader_and_isr(partition_state(partition=1)).partition_errors == {
        TopicPartition("t", 1): ErrorCode.NONE
    }


def test_an_append_wakes_whoever_waits_for_deletions_too(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    partition = parts.lead()
    ended: list[DelayedOperation] = []

    class Waiter(DelayedOperation):
        def ready(self) -> bool:
            return partition.log.log_end_offset > 0

        def on_complete(self) -> None:
            ended.append(self)

    purgatory = parts.replicas.delete_records_purgatory
    purgatory.try_complete_else_watch(Waiter(1 << 60), [partition.topic_partition])
    parts.replicas.append("t", 0, batch(), 1, 11)
    purgatory.try_complete_else_watch(Waiter(1 << 60), [partition.topic_partition])
    assert len(ended) == 2


def test_whoever_hears_of_a_failed_directory_finds_it_gone(tmp_path: Path) -> None:
    """A coordinator may append, and a consumer of a follower read, while they are told."""
    parts = Parts(tmp_path / "a", tmp_path / "b")
    parts.apply_leader_and_isr(
        partition_state(), partition_state(partition=1), partition_state(2, (1, 2), partition=2)
    )
    lost = [p for p in parts.replicas.all_partitions() if p.log.log_dir == str(tmp_path / "a")]
    answers: list[list[FetchResult]] = []
    for partition in lost:
        row = FetchPartition("t", TOPIC_ID, partition.topic_partition.partition, 0, 100)
        parts.fetch_reader.fetch(FetchParams(-1, 500, 1, 1, 0, 11), [row], answers.append)
    heard: list[bool] = []
    failure = LogDirFailure(str(tmp_path / "a"), "gone")

    def on_leadership(partition: Partition, leads: bool) -> None:
        heard.append(leads)
        parts.replicas.log_dir_failed(failure)
        with pytest.raises(ApiError):
            parts.replicas.append(*partition.topic_partition, batch(), -1, 11)

    parts.replicas.on_leadership = on_leadership
    parts.replicas.log_dir_failed(failure)
    assert heard == [False] * len([p for p in lost if p.leader_id == 1])
    errors = [result.error for [result] in answers]
    assert errors == [ErrorCode.KAFKA_STORAGE_ERROR] * len(lost) != []
