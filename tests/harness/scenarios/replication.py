"""Steps of the scenarios of replication: broker 1's replica of t-0, and requests to it.

`broker N leads` is the controller's LeaderAndIsr to broker 1, with the next partition epoch; the
other brokers exist only as fetches. Outcomes: the answer to a request, then the changes of log
start, log end, high watermark and ISR.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kafkapy.common.cluster_state import RECOVERING, LeaderAndIsr
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.record.batch_header import iter_headers
from kafkapy.replication.fetch_session import FetchPartition, FetchResult
from kafkapy.replication.isr import IsrChange
from kafkapy.replication.partition import CONSUMER, READ_UNCOMMITTED, Partition
from tests.harness.scenarios.interpreter import World, duration_ms, step
from tests.harness.storage.partitions import (
    TOPIC_ID,
    batch,
    log_manager,
    make_partition,
    partition_state,
)

NOW_MS = 1_000_000


class ReplicationWorld(World):
    """One partition; `replica.lag.time.max.ms` is a second."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.manager = log_manager(directory)
        self.partition: Partition = make_partition(self.manager)
        self.now_ms = NOW_MS
        self.change: IsrChange | None = None
        self._dead: set[int] = set()
        self.partition.is_live = lambda broker_id: broker_id not in self._dead
        self._last_facts = self.facts()

    def facts(self) -> dict[str, str]:
        log = self.partition.log
        return {
            "log start": str(log.log_start_offset),
            "log end": str(log.log_end_offset),
            "high watermark": str(log.high_watermark),
            "isr": numbers(sorted(self.partition.isr)),
        }

    # The controller.

    @step("broker {leader} leads")
    def leads(
        self,
        leader: str,
        isr: str = "",
        replicas: str = "",
        epoch: str = "0",
        partition_epoch: str = "",
        recovering: str | None = None,
    ) -> None:
        partition = self.partition
        members = brokers(isr or leader)
        next_epoch = int(partition_epoch) if partition_epoch else partition.partition_epoch + 1
        row = partition_state(
            int(leader), members, brokers(replicas) or members, int(epoch), next_epoch
        )
        if recovering is not None:
            row.state = replace(row.state, leader_recovery_state=RECOVERING)
        if int(leader) == partition.local_id:
            is_new_epoch = partition.make_leader(row, self.now_ms)
        else:
            is_new_epoch = partition.make_follower(row)
        if not is_new_epoch:
            self.report("no new epoch")

    @step("the partition")
    def the_partition(self) -> None:
        partition = self.partition
        self.report("leads" if partition.is_leader else f"follows {partition.leader_id}")
        self.report(f"epoch {partition.leader_epoch}, partition epoch {partition.partition_epoch}")
        if partition.is_under_replicated:
            self.report("under-replicated")
        if partition.leader_recovery_state == RECOVERING:
            self.report("recovering")

    @step("epoch {epoch} of the log")
    def epoch_of_the_log(self, epoch: str) -> None:
        self.report("ends at {1}".format(*self.partition.log.end_offset_for_epoch(int(epoch))))

    @step("maybe expand the ISR by {broker}")
    def maybe_expand(self, broker: str) -> None:
        self._proposes(self.partition.propose_expansion(int(broker)))

    @step("maybe shrink the ISR")
    def maybe_shrink(self) -> None:
        self._proposes(self.partition.propose_shrinking(self.now_ms))

    def _proposes(self, change: IsrChange | None) -> None:
        if change is None:
            self.report("nothing")
            return
        self.change = change
        assert (change.topic_partition, change.topic_id) == (
            self.partition.topic_partition,
            TOPIC_ID,
        )
        epochs = f"epoch {change.leader_epoch}, partition epoch {change.partition_epoch}"
        recovers = ", recovering" if change.leader_recovery_state == RECOVERING else ""
        self.report(f"proposes {numbers(change.isr)} in {epochs}{recovers}")

    @step("the controller agrees")
    def agrees(self, epoch: str = "", partition_epoch: str = "") -> None:
        """Accept the last proposal, with its leader epoch and the next partition epoch."""
        change = self.change
        assert change is not None
        leader_epoch = int(epoch) if epoch else change.leader_epoch
        next_epoch = int(partition_epoch) if partition_epoch else change.partition_epoch + 1
        state = LeaderAndIsr(1, leader_epoch, change.isr, next_epoch, 1)
        self.report(
            self.partition.on_alter_partition_response(
                change, ErrorCode.NONE, state, self.now_ms
            ).value
        )

    @step("the controller refuses with {error}")
    def refuses(self, error: str) -> None:
        assert self.change is not None
        answered = self.partition.on_alter_partition_response(
            self.change, ErrorCode[error], None, self.now_ms
        )
        self.report(answered.value)

    @step("broker {broker} is dead")
    def is_dead(self, broker: str) -> None:
        self._dead.add(int(broker))

    # Clients, followers and time.

    @step("the topic has {key}={value}")
    def topic_has(self, key: str, value: str) -> None:
        self.manager.update_topic_config("t", {key: value})

    @step("a batch of {count} is produced", "{batches} batches of {count} are produced")
    def is_produced(self, count: str, batches: str = "1", acks: str = "all") -> None:
        acks_number = -1 if acks == "all" else int(acks)
        records, now_ms = batch(int(count)), self.now_ms
        try:
            for _ in range(int(batches)):
                self.partition.append_as_leader(records, acks_number, now_ms, now_ms, 11)
        except ApiError as error:
            self._refuse(error)

    def _refuse(self, error: ApiError) -> None:
        assert "t-0" in error.message
        self.report(error.code.name)

    @step("broker {broker} fetches from {offset}")
    def fetches(
        self,
        broker: str,
        offset: str,
        epoch: str = "-1",
        last_epoch: str = "-1",
        log_start: str = "0",
    ) -> None:
        """Options: the current leader epoch, the epoch of the last record, and the log start."""
        self._read(int(broker), offset, epoch, last_epoch, log_start)

    @step("a consumer fetches from {offset}")
    def consumer_fetches(self, offset: str, epoch: str = "-1", rack: str | None = None) -> None:
        """`rack`: it may read from a follower (KIP-392)."""
        self._read(CONSUMER, offset, epoch, "-1", "0", leader_only=rack is None)

    def _read(
        self, reader: int, offset: str, epoch: str, last: str, start: str, leader_only: bool = True
    ) -> None:
        row = FetchPartition(
            "t", ZERO_UUID, 0, int(offset), 1 << 20, int(epoch), int(last), int(start)
        )
        try:
            result = self.partition.read(
                row, reader, READ_UNCOMMITTED, 1 << 20, True, self.now_ms, leader_only=leader_only
            )
        except ApiError as error:
            self.report(error.code.name)
        else:
            if reader == CONSUMER or result.size_bytes or result.diverging_epoch:
                self.report(shown(result))
            assert result.high_watermark == self.partition.log.high_watermark

    @step("replicas that a consumer may read {offset} from")
    def read_replicas(self, offset: str) -> None:
        self.report(numbers(r.broker_id for r in self.partition.read_replicas(int(offset))))

    @step("records before {offset} are deleted", "records are deleted")
    def records_are_deleted(self, offset: str = "-1") -> None:
        try:
            self.partition.delete_records(int(offset))
        except ApiError as error:
            self.report(error.code.name)

    @step("the low watermark")
    def low_watermark(self) -> None:
        self.report(str(self.partition.low_watermark))

    @step("the high watermark is checked")
    def high_watermark_is_checked(self) -> None:
        self.partition.maybe_increment_high_watermark(self.now_ms)

    @step("{number} {unit} pass", "{number} {unit} passes")
    def time_passes(self, number: str, unit: str) -> None:
        self.now_ms += duration_ms(f"{number} {unit}")


def brokers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def numbers(broker_ids: Iterable[int]) -> str:
    return " ".join(map(str, broker_ids)) or "none"


def shown(result: FetchResult) -> str:
    """The offsets that a fetch returned."""
    if result.diverging_epoch is not None:
        assert result.size_bytes == 0
        return "diverges in epoch {}, which ends at {}".format(*result.diverging_epoch)
    headers = [header for _, header in iter_headers(result.records)]
    return (
        f"gets {headers[0].base_offset} to {headers[-1].last_offset}" if headers else "gets nothing"
    )
