"""The checker of committed records finds those that an unclean leader lacks in a compacted log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.zk.stores import paths
from kafkapy.zk.zookeeper import SetData
from tests.simulation.checkers.base import PartitionKey, Violation
from tests.simulation.checkers.committed_logs import CommittedLogs, _Batch, _Committed, _Election
from tests.simulation.history import Loss

AT = TopicPartition(GROUP_METADATA_TOPIC, 0)
KEY = PartitionKey("id", AT)
STATE = paths.partition_state(*AT)
NODES: dict[int, Any] = {
    number: SimpleNamespace(broker_id=number, run_number=1, last_power_cut_us=-1)
    for number in (1, 3)
}


class Tree:
    """Two registered brokers and a controller."""

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {
            paths.CONTROLLER_EPOCH: SimpleNamespace(data=b"1"),
            **{
                f"{paths.BROKER_IDS}/{number}": SimpleNamespace(stat=SimpleNamespace(czxid=number))
                for number in NODES
            },
        }

    def child_names(self, path: str) -> list[str]:
        return [name.removeprefix(f"{path}/") for name in self.nodes if name.startswith(f"{path}/")]


class Losses:
    """The history's losses."""

    def __init__(self) -> None:
        self.losses: dict[TopicPartition, list[Loss]] = {}

    def allow_loss(self, at: TopicPartition, loss: Loss) -> None:
        self.losses.setdefault(at, []).append(loss)


def new_checker(allows_unclean_elections: bool, may_have_gaps: bool = False) -> CommittedLogs:
    cluster: Any = SimpleNamespace(
        plan=SimpleNamespace(compacts=True),
        allows_unclean_elections=allows_unclean_elections,
        may_have_gaps=may_have_gaps,
        history=Losses(),
        committed_ends={},
        required_ends={},
        unclean_leaders={},
        power_cut_of_all_us=-1,
        world=SimpleNamespace(
            ensemble=SimpleNamespace(tree=Tree()), events=SimpleNamespace(now_us=0)
        ),
    )
    return CommittedLogs(cluster)


def state(leader: int, leader_epoch: int) -> bytes:
    return orjson.dumps(
        {"leader": leader, "leader_epoch": leader_epoch, "isr": [leader], "brokers_zxid": 9}
    )


def leads(
    checker: CommittedLogs,
    leader: int,
    high_watermark: int,
    end: int,
    epochs: list[tuple[int, int]],
    is_replaced: bool = False,
) -> None:
    """Broker `leader` becomes the leader, and leads with this log; or it is replaced, and goes on
    to lead."""
    epoch = epochs[-1][0]
    if not is_replaced:
        checker.on_change([SetData(STATE, state(leader, epoch))])
    log = SimpleNamespace(
        log_start_offset=0,
        log_end_offset=end,
        high_watermark=high_watermark,
        epochs=SimpleNamespace(entries=lambda: epochs),
    )
    partition: Any = SimpleNamespace(
        topic_partition=AT, is_leader=True, leader_epoch=epoch, log=log
    )
    checker.on_partition(NODES[leader], KEY, partition)


def test_a_longer_log_of_other_epochs_lacks_committed_records() -> None:
    """Seed 24158351: the log of a replaced leader went on where the next leader had begun."""
    unclean = new_checker(allows_unclean_elections=True)
    leads(unclean, 3, high_watermark=105, end=123, epochs=[(0, 0), (3, 75)])
    leads(unclean, 1, high_watermark=75, end=159, epochs=[(0, 0), (4, 159)])
    [loss] = unclean.cluster.history.losses[AT]
    assert (loss.kept, loss.end) == (75, 159)
    assert loss.reason.startswith("an unclean election")


def test_a_longer_log_of_the_same_epochs_lacks_nothing() -> None:
    unclean = new_checker(allows_unclean_elections=True)
    leads(unclean, 3, high_watermark=105, end=123, epochs=[(0, 0), (3, 75)])
    leads(unclean, 1, high_watermark=75, end=123, epochs=[(0, 0), (3, 75), (4, 123)])
    assert not unclean.cluster.history.losses


def test_an_unclean_leader_needs_a_config_or_a_request() -> None:
    clean = new_checker(allows_unclean_elections=False)
    leads(clean, 3, high_watermark=105, end=123, epochs=[(0, 0), (3, 75)])
    with pytest.raises(Violation, match="has committed records up to offset 75 of 105"):
        leads(clean, 1, high_watermark=75, end=159, epochs=[(0, 0), (4, 159)])


def test_a_new_leader_has_what_the_replaced_one_commits_late() -> None:
    """Seed 24265038: the response to a change of the ISR arrived after the next election."""
    checker = new_checker(allows_unclean_elections=False)
    leads(checker, 3, high_watermark=85, end=88, epochs=[(0, 0)])
    leads(checker, 1, high_watermark=85, end=88, epochs=[(0, 0), (2, 88)])
    leads(checker, 3, high_watermark=88, end=88, epochs=[(0, 0)], is_replaced=True)
    assert checker.cluster.committed_ends == {KEY: 85}
    assert checker.cluster.required_ends == {KEY: 88}


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_gap_is_allowed_without_the_recovery_checkpoint(
    has_checkpoint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 24186086: a power cut removed the end of a closed segment."""
    at = TopicPartition("orders", 0)
    key = PartitionKey("id", at)
    batches = {base: _Batch(base + 5, 0, base) for base in (0, 5, 10)}
    checker = new_checker(allows_unclean_elections=False, may_have_gaps=not has_checkpoint)
    checker._at_risk[1, key] = 15
    checker._elections[paths.partition_state(*at), 1] = _Election(
        1, (1, 3), (1, 3), 1, True, (3,), 1
    )
    checker._isr[paths.partition_state(*at)] = (1, 3)
    log = SimpleNamespace(log_start_offset=0, log_end_offset=15)
    leader: Any = SimpleNamespace(topic_partition=at, leader_epoch=1, log=log)
    committed = _Committed()
    committed.batches, committed.end = dict(batches), 15
    del batches[5]
    monkeypatch.setattr(checker, "_batches", lambda *_: list(batches.items()))
    if has_checkpoint:
        with pytest.raises(Violation, match="has committed records up to offset 5 of 15"):
            checker._check_new_leader(NODES[1], key, leader, committed)
        return
    assert not checker._check_new_leader(NODES[1], key, leader, committed)
    [loss] = checker.cluster.history.losses[at]
    assert (loss.kept, loss.end) == (5, 10)
    assert committed.batches == batches


@pytest.mark.parametrize("lacks", [False, True])
def test_a_batch_around_the_high_watermark_is_checked_once_all_of_it_is_committed(
    lacks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 24195871: DeleteRecords put the log start inside a batch, where a follower began."""
    at = TopicPartition("trimmed", 0)
    key = PartitionKey("id", at)
    batches = {base: _Batch(base + 3, 0, base) for base in (31, 34)}
    checker = new_checker(allows_unclean_elections=False)
    log = SimpleNamespace(log_start_offset=31, log_end_offset=37, high_watermark=33)
    leader: Any = SimpleNamespace(topic_partition=at, is_leader=True, leader_epoch=0, log=log)
    committed = _Committed()
    committed.batches, committed.end = dict(batches), 37
    if lacks:
        del batches[31]

    def batches_below(_: object, start: int, end: int) -> list[tuple[int, _Batch]]:
        found = batches.items()
        return [(base, b) for base, b in found if start < b.next_offset <= end]

    monkeypatch.setattr(checker, "_batches", batches_below)
    checker._compare(NODES[1], key, leader, committed, may_commit=True)
    log.high_watermark = 37
    if lacks:
        with pytest.raises(Violation, match="broker 1 has no batch from 31 to 34"):
            checker._compare(NODES[1], key, leader, committed, may_commit=True)
        return
    checker._compare(NODES[1], key, leader, committed, may_commit=True)
