"""The controller's commands are fenced, applied in the order of their arrival, and answered."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.cluster_state import (
    LEADER_DURING_DELETE,
    CommandResult,
    LeaderAndIsr,
    LeaderAndIsrCommand,
    StopReplicaCommand,
    StopReplicaPartition,
    TopicDescription,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.errors import ErrorCode, KafkapyError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.messages import CommitOffsets, FetchOffsets, OffsetToCommit
from kafkapy.server.cluster.control_request_handler import Command
from kafkapy.storage.log_config import LogConfig
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.server_parts import Parts
from tests.harness.cores.znodes import run
from tests.harness.scripted import admins
from tests.harness.storage.partitions import TOPIC_ID, partition_state

T0 = TopicPartition("t", 0)
STALE_BROKER = CommandResult(ErrorCode.STALE_BROKER_EPOCH)
STALE_CONTROLLER = CommandResult(ErrorCode.STALE_CONTROLLER_EPOCH)
BROKER_EPOCH = 7


class Receiving:
    """A command receiver over real parts and a store in memory."""

    def __init__(self, directory: Path) -> None:
        self.parts = Parts(directory)
        self.store: ZkStore = admins.store()
        self.receiver = self.parts.control_request_handler(self.store)
        self.receiver.broker_epoch = BROKER_EPOCH

    def apply(self, command: Command) -> CommandResult:
        return asyncio.run(self.receiver.apply(command))

    def hosted(self) -> list[TopicPartition]:
        return [p.topic_partition for p in self.parts.replicas.all_partitions()]


@pytest.fixture
def receiving(tmp_path: Path) -> Receiving:
    return Receiving(tmp_path)


ILLEGAL_NAMES = (
    "../../x", "../x", "..", ".", "", "a/b", "/tmp/x", "a\nb", "x\nt 0 99", "a b", "\0", "\u00e9",
    "\u2028", "x" * 250,
)  # fmt: skip


def leading(
    broker_epoch: int = BROKER_EPOCH, controller_epoch: int = 1, **state: int
) -> LeaderAndIsrCommand:
    rows = [partition_state(**state)]  # type: ignore[arg-type]
    return LeaderAndIsrCommand(1, controller_epoch, broker_epoch, rows)


def metadata(
    *topics: str, leader: int = 1, broker_epoch: int = BROKER_EPOCH, controller_epoch: int = 1
) -> UpdateMetadataCommand:
    rows = [
        UpdateMetadataPartition(name, TOPIC_ID, 0, LeaderAndIsr(leader, 0, (1,), 0, 1), (1,))
        for name in topics
    ]
    return UpdateMetadataCommand(1, controller_epoch, broker_epoch, rows, [admins.broker(1)])


def stopping(broker_epoch: int = BROKER_EPOCH, controller_epoch: int = 1) -> StopReplicaCommand:
    rows = [StopReplicaPartition("t", 0, delete=True)]
    return StopReplicaCommand(1, controller_epoch, broker_epoch, rows)


def test_a_new_log_has_the_configs_that_the_topic_has_in_the_store(receiving: Receiving) -> None:
    run(receiving.store.configs.set("topics", "t", {"max.message.bytes": "77"}))
    assert receiving.apply(leading()).partition_errors == {T0: ErrorCode.NONE}
    assert receiving.parts.replicas.get("t", 0).log.config.max_message_bytes == 77
    assert receiving.parts.configs.topic_overrides["t"] == {"max.message.bytes": "77"}


def test_configs_in_a_broken_znode_cost_no_topic_its_leader(receiving: Receiving) -> None:
    """Kafka takes them for empty. What was known of them before stays."""
    run(receiving.store.zookeeper.create("/config/topics/t", b"broken"))
    receiving.parts.configs.topic_overrides["t"] = {"max.message.bytes": "66"}
    rows = [partition_state(), partition_state(topic="u", topic_id=Uuid(bytes(15) + b"9"))]
    result = receiving.apply(LeaderAndIsrCommand(1, 1, BROKER_EPOCH, rows))
    assert result == CommandResult(
        partition_errors={T0: ErrorCode.NONE, TopicPartition("u", 0): ErrorCode.NONE}
    )
    assert receiving.parts.replicas.get("t", 0).log.config.max_message_bytes == 66


def test_a_broker_that_stops_changes_nothing_for_its_own_controller(receiving: Receiving) -> None:
    """It followed again, and appended to logs that it had closed as flushed."""
    run(receiving.receiver.stop())
    for command in (leading(), metadata("t"), stopping()):
        assert receiving.apply(command) == STALE_BROKER
    assert not receiving.hosted()
    assert not receiving.parts.metadata.image.topics


@pytest.mark.parametrize("waits_for_store", [False, True])
def test_the_end_waits_for_changes_and_not_for_zookeeper(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch, waits_for_store: bool
) -> None:
    goes_on, steps = asyncio.Event(), []
    target, name = receiving.parts.replicas, "become_leader_or_follower"
    if waits_for_store:
        target, name = receiving.store.configs, "get"
    original = getattr(target, name)

    async def slow(*words: Any) -> Any:
        steps.append("begins")
        await goes_on.wait()
        return await original(*words)

    monkeypatch.setattr(target, name, slow)

    async def scene() -> CommandResult:
        applying = asyncio.create_task(receiving.receiver.apply(leading()))
        while not steps:
            await asyncio.sleep(0)
        ending = asyncio.create_task(receiving.receiver.stop())
        for _ in range(3):
            await asyncio.sleep(0)
        assert ending.done() is waits_for_store
        goes_on.set()
        await ending
        return await applying

    result = asyncio.run(scene())
    if waits_for_store:
        assert (result, receiving.hosted()) == (STALE_BROKER, [])
    else:
        assert (result.partition_errors, receiving.hosted()) == ({T0: ErrorCode.NONE}, [T0])


def test_a_topic_that_grows_keeps_the_configs_it_has(receiving: Receiving) -> None:
    receiving.apply(leading())
    receiving.parts.configs.topic_overrides["t"] = {"max.message.bytes": "88"}
    receiving.apply(leading(partition=1))
    assert receiving.parts.replicas.get("t", 1).log.config.max_message_bytes == 88


def test_a_new_log_has_the_configs_that_change_before_it_is_created(receiving: Receiving) -> None:
    """A command of many partitions yields to other tasks, as to the one that applies configs."""

    async def scenario() -> None:
        await receiving.store.configs.set("topics", "t", {"max.message.bytes": "77"})
        rows = [partition_state(partition=index) for index in range(201)]
        others = [replace(row, topic="s") for row in rows[1:]]
        command = LeaderAndIsrCommand(1, 1, BROKER_EPOCH, [*others, rows[0]])
        applying = asyncio.create_task(receiving.receiver.apply(command))
        while not receiving.hosted():
            await asyncio.sleep(0)
        assert T0 not in receiving.hosted()
        changed = {"max.message.bytes": "88"}
        receiving.parts.replicas.log_manager.update_topic_config("t", changed)
        receiving.parts.configs.topic_overrides["t"] = changed
        await applying

    asyncio.run(scenario())
    assert receiving.parts.replicas.get("t", 0).log.config.max_message_bytes == 88


def test_commands_to_an_earlier_life_of_the_broker_are_refused(receiving: Receiving) -> None:
    old = BROKER_EPOCH - 1
    refused: list[Command] = [leading(old), metadata("t", broker_epoch=old), stopping(old)]
    for command in refused:
        assert receiving.apply(command) == STALE_BROKER
    assert receiving.hosted() == []
    assert receiving.parts.metadata.image.topics == {}


def test_the_controller_epoch_of_a_refused_command_is_not_remembered(receiving: Receiving) -> None:
    assert receiving.apply(leading(BROKER_EPOCH - 1, controller_epoch=9)) == STALE_BROKER
    assert receiving.apply(leading()).error is ErrorCode.NONE


def test_the_broker_epoch_of_the_last_leader_and_isr_is_kept(
    receiving: Receiving,
) -> None:
    receiving.apply(metadata("t"))
    receiving.apply(leading(BROKER_EPOCH - 1))
    assert receiving.receiver.leader_and_isr_epoch < BROKER_EPOCH
    receiving.apply(leading())
    assert receiving.receiver.leader_and_isr_epoch == BROKER_EPOCH
    receiving.receiver.broker_epoch += 1
    receiving.apply(leading(BROKER_EPOCH + 1, controller_epoch=0))
    assert receiving.receiver.leader_and_isr_epoch == BROKER_EPOCH


def test_a_leader_and_isr_that_overtakes_the_answer_to_the_registration_counts_for_it(
    receiving: Receiving,
) -> None:
    receiving.apply(leading(BROKER_EPOCH + 1))
    receiving.receiver.broker_epoch += 1
    assert receiving.receiver.leader_and_isr_epoch == receiving.receiver.broker_epoch


def test_a_leader_and_isr_of_before_a_registration_does_not_count_for_it(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker registers while the command is applied."""
    become = receiving.parts.replicas.become_leader_or_follower

    async def slow(*args: Any) -> CommandResult:
        receiving.receiver.broker_epoch += 1
        return await become(*args)

    monkeypatch.setattr(receiving.parts.replicas, "become_leader_or_follower", slow)
    receiving.apply(leading())
    assert receiving.receiver.leader_and_isr_epoch == BROKER_EPOCH


@pytest.mark.parametrize("epoch", [-1, BROKER_EPOCH, BROKER_EPOCH + 1])
def test_commands_without_or_with_a_later_epoch_are_taken(receiving: Receiving, epoch: int) -> None:
    taken: list[Command] = [leading(epoch), metadata(broker_epoch=epoch), stopping(epoch)]
    for command in taken:
        assert receiving.apply(command).error is ErrorCode.NONE


@pytest.mark.parametrize("newer", [leading, metadata, stopping])
def test_whoever_heard_of_a_newer_controller_refuses_the_older_in_everything(
    receiving: Receiving, newer: Callable[..., Command]
) -> None:
    assert receiving.apply(newer(controller_epoch=5)).error is ErrorCode.NONE
    before = (receiving.hosted(), receiving.parts.metadata.image)
    older: list[Command] = [
        leading(controller_epoch=4, leader_epoch=7),
        metadata("u", controller_epoch=4),
        stopping(controller_epoch=4),
    ]
    for command in older:
        assert receiving.apply(command) == STALE_CONTROLLER
    assert (receiving.hosted(), receiving.parts.metadata.image) == before


def test_new_metadata_wakes_who_waits_for_it(receiving: Receiving) -> None:
    async def scenario() -> bool:
        waits = asyncio.ensure_future(receiving.parts.waiter.wait_until_topics_ready(["t"], 60_000))
        await asyncio.sleep(0)
        await receiving.receiver.apply(metadata("t"))
        return await waits

    assert asyncio.run(scenario())


def test_a_deleted_topic_takes_its_committed_offsets_and_configs_along(
    receiving: Receiving,
) -> None:
    parts = receiving.parts
    parts.coordinate()
    coordinator = parts.groups.coordinator
    partitions = [T0, TopicPartition("u", 0)]
    for committed in partitions:
        request = CommitOffsets("g", {committed: OffsetToCommit(5)})
        parts.groups.call(coordinator.commit_offsets, request, lambda result: result)
    receiving.apply(metadata("t", "u"))
    parts.configs.topic_overrides.update({"t": {}, "u": {}})
    receiving.apply(metadata("t", leader=LEADER_DURING_DELETE))
    found = parts.groups.call(
        coordinator.fetch_offsets, FetchOffsets("g", partitions), lambda result: result
    )
    assert [found.offsets[partition].offset for partition in partitions] == [-1, 5]
    assert list(parts.configs.topic_overrides) == ["u"]


def test_counters_and_configs_of_deleted_topics_do_not_fill_memory(receiving: Receiving) -> None:
    """Nor does a topic that is created again under the name continue the counts of the old one."""
    parts = receiving.parts
    for topic in ("t", "u"):
        run(receiving.store.configs.set("topics", topic, {"max.message.bytes": "123456"}))
    rows = [partition_state(), partition_state(topic="u", topic_id=Uuid(bytes(15) + b"9"))]
    receiving.apply(LeaderAndIsrCommand(1, 1, BROKER_EPOCH, rows))
    parts.metrics.count_append("t", 1, 10)
    parts.metrics.count_append("u", 1, 10)
    receiving.apply(stopping())
    assert parts.metrics.topics.keys() == {"u", ""}
    for _ in parts.logs.deletion_slices(2**62):
        pass
    gc.collect()
    configs = [each for each in gc.get_objects() if isinstance(each, LogConfig)]
    assert [each.max_message_bytes for each in configs].count(123456) == 1


class SlowConfigs:
    """Topic configs that are read when the test says so, or not at all."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.released = asyncio.Event()
        self.failure: KafkapyError | None = None

    async def get(self, kind: str, name: str) -> dict[str, str]:
        self.asked.append(name)
        await self.released.wait()
        if self.failure is not None:
            raise self.failure
        return {}


def test_topics_that_were_deleted_during_an_expired_session_are_forgotten(
    receiving: Receiving,
) -> None:
    run(receiving.store.topics.create(TopicDescription("t", TOPIC_ID, {0: (1,)})))
    receiving.apply(metadata("t", "u"))
    run(receiving.receiver.remove_deleted_topics())
    image = receiving.parts.metadata.image
    assert sorted(image.topics) == ["t"]
    assert list(image.brokers) == [1]
    assert image.controller_id == 1


def test_a_topic_that_this_brokers_zookeeper_does_not_have_yet_is_not_forgotten(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server may lag behind the one that the controller wrote to."""
    run(receiving.store.topics.create(TopicDescription("t", TOPIC_ID, {0: (1,)})))
    receiving.apply(metadata("t", "u"))

    async def children_before(path: str, watch: object = None) -> list[str]:
        return []

    monkeypatch.setattr(receiving.store.zookeeper, "children", children_before)
    run(receiving.receiver.remove_deleted_topics())
    assert sorted(receiving.parts.metadata.image.topics) == ["t"]


def test_what_a_controller_deleted_is_forgotten_with_the_next_one(receiving: Receiving) -> None:
    run(receiving.store.topics.create(TopicDescription("t", TOPIC_ID, {0: (1,)})))
    receiving.apply(metadata())
    receiving.apply(metadata("t", "u"))
    assert sorted(receiving.parts.metadata.image.topics) == ["t", "u"]
    receiving.apply(metadata(controller_epoch=2))
    assert sorted(receiving.parts.metadata.image.topics) == ["t"]


def test_what_comes_after_a_leader_and_isr_waits_while_it_reads_configs(
    receiving: Receiving,
) -> None:
    async def scenario() -> None:
        configs = SlowConfigs()
        receiving.store.configs = configs  # type: ignore[assignment]
        done: list[str] = []

        async def apply(name: str, command: Command) -> None:
            await receiving.receiver.apply(command)
            done.append(name)

        rows = [partition_state(), partition_state(partition=1)]
        commands: dict[str, Command] = {
            "lead": LeaderAndIsrCommand(1, 1, BROKER_EPOCH, rows),
            "metadata": metadata("t"),
            "stop": stopping(),
            "lead again": leading(leader_epoch=1),
        }
        tasks = [asyncio.create_task(apply(*item)) for item in commands.items()]
        while not configs.asked:
            await asyncio.sleep(0)
        assert (configs.asked, done, receiving.hosted()) == (["t"], [], [])
        configs.released.set()
        await asyncio.gather(*tasks)
        assert done == list(commands)
        assert sorted(receiving.hosted()) == [T0, TopicPartition("t", 1)]

    asyncio.run(scenario())


def test_configs_that_cannot_be_read_refuse_the_command_and_not_the_next(
    receiving: Receiving,
) -> None:
    configs = SlowConfigs()
    configs.failure = KafkapyError("no session")
    configs.released.set()
    receiving.store.configs = configs  # type: ignore[assignment]
    assert receiving.apply(leading()) == CommandResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert receiving.apply(metadata("t")) == CommandResult()
    assert list(receiving.parts.metadata.image.topics) == ["t"]


def everything(directory: Path) -> set[Path]:
    return set(directory.rglob("*"))


def test_no_command_makes_or_deletes_anything_by_an_illegal_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The exploit: `../../x` was made outside log.dirs, `../x` renamed and deleted there, and a
    newline broke the checkpoints, so that the broker did not start again."""
    receiving = Receiving(tmp_path / "logs" / "one")
    receiving.apply(metadata("t"))
    for name in ("x-0", "logs/x-0"):
        (tmp_path / name).mkdir()
    before = everything(tmp_path)
    for name in ILLEGAL_NAMES:
        partition = TopicPartition(name, 0)
        refused = {partition: ErrorCode.INVALID_TOPIC_EXCEPTION}
        rows = [partition_state(topic=name)]
        lead = LeaderAndIsrCommand(1, 1, BROKER_EPOCH, rows)
        assert receiving.apply(lead) == CommandResult(ErrorCode.NONE, refused)
        stop = StopReplicaCommand(1, 1, BROKER_EPOCH, [StopReplicaPartition(name, 0, delete=True)])
        assert receiving.apply(stop) == CommandResult(ErrorCode.NONE, refused)
        assert receiving.apply(metadata("t", name)) == CommandResult()
        assert f"invalid topic name {name[:249]!r}" in caplog.text
    assert set(receiving.parts.metadata.image.topics) == {"t"}
    assert receiving.hosted() == []
    assert everything(tmp_path) == before
    receiving.parts.replicas.log_manager.checkpoint_all()
    checkpoint = tmp_path / "logs" / "one" / "replication-offset-checkpoint"
    assert checkpoint.read_bytes() == b"0\n0\n"


def test_the_other_rows_of_a_command_are_obeyed(receiving: Receiving) -> None:
    rows = [partition_state(topic="../x"), partition_state(), partition_state(partition=-1)]
    result = receiving.apply(LeaderAndIsrCommand(1, 1, BROKER_EPOCH, rows))
    assert result.partition_errors == {
        TopicPartition("../x", 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
        T0: ErrorCode.NONE,
        TopicPartition("t", -1): ErrorCode.INVALID_PARTITIONS,
    }
    assert receiving.hosted() == [T0]


def test_a_directory_name_that_no_file_system_takes_costs_its_partition_alone(
    receiving: Receiving,
) -> None:
    """A disk that says "File name too long" has not failed."""
    longest = TopicPartition("x" * 249, 100_000)
    row = partition_state(topic=longest.topic, partition=longest.partition)
    result = receiving.apply(LeaderAndIsrCommand(1, 1, BROKER_EPOCH, [row, partition_state()]))
    assert result.partition_errors == {
        longest: ErrorCode.INVALID_TOPIC_EXCEPTION,
        T0: ErrorCode.NONE,
    }
    assert receiving.parts.replicas.offline == set()
    assert receiving.parts.replicas.log_manager.offline_log_dirs == []
