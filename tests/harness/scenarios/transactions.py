"""Steps of the scenarios of transactions: producers of one transactional id, their coordinator, its
log and its clock.

A name is a producer's process: it has the last producer id and epoch that it got. Steps are
those of transaction version 2, unless their option says `version 0`; with `lost` the answer does
not reach the producer. After an outcome, the changed facts follow: the state of the id, the
producer that its coordinator has, and the decision whose markers are being written.
"""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.log_records import (
    read_transaction,
    transaction_key,
    transaction_value,
)
from kafkapy.coordinator.transactions.messages import (
    EndTransaction,
    EndTransactionResult,
    InitProducerIdResult,
)
from kafkapy.coordinator.transactions.state import Transition
from kafkapy.record.builder import RecordData
from tests.harness.cores.transaction_shell import ID, TransactionShell
from tests.harness.scenarios.interpreter import World, duration_ms, step


def _text(producer: Producer) -> str:
    return f"{producer.producer_id}:{producer.producer_epoch}"


class TransactionWorld(World):
    """One transactional id in a cluster of transaction version 2."""

    def __init__(self) -> None:
        super().__init__()
        self.shell = TransactionShell()
        self.shell.version = 2
        self.producers: dict[str, Producer] = {}
        self._epoch = 1
        self._last_facts = self.facts()

    def facts(self) -> dict[str, str]:
        found = self.shell.describe()
        if found.error is not ErrorCode.NONE:
            return {}
        decisions = " and ".join(
            f"{'commit' if d.commit else 'abort'} {_text(d.producer)} of"
            f" {' '.join(map(str, d.partitions)) or 'nothing'}"
            for d in self.shell.markers
        )
        return {
            "state": found.state,
            "producer": _text(Producer(found.producer_id, found.producer_epoch)),
            "markers": decisions or "none",
        }

    @step("the cluster has transaction version {version}")
    def has_version(self, version: str) -> None:
        self.shell.version = int(version)

    @step("{name} begins")
    def begins(self, name: str) -> None:
        """A new process initializes its producer."""
        self._initialized(name, self.shell.init())

    @step("{name} goes on")
    def goes_on(self, name: str, lost: str | None = None) -> None:
        """InitProducerId with the present producer id and epoch."""
        result = self.shell.init(expected=self.producers[name])
        self._initialized(name, result, lost is not None)

    def _initialized(self, name: str, result: InitProducerIdResult, lost: bool = False) -> None:
        if result.error is not ErrorCode.NONE:
            self.report(result.error.name)
            return
        producer = Producer(result.producer_id, result.producer_epoch)
        self.report(_text(producer))
        if not lost:
            self.producers[name] = producer

    @step("{name} adds {partitions...}")
    def adds(self, name: str, partitions: str, version: str = "2") -> None:
        """Add partitions (`t-0`); with version 2, as the leader of the partition does."""
        added = [TopicPartition(t, int(i)) for t, i in (p.split("-") for p in partitions.split())]
        error = self.shell.add(self.producers[name], *added, version=int(version))
        self.report("waits" if error is None else error.name.replace("NONE", "ok"))

    @step("{name} commits")
    def commits(self, name: str, version: str = "2", lost: str | None = None) -> None:
        self._end(name, True, int(version), lost is not None)

    @step("{name} aborts")
    def aborts(self, name: str, version: str = "2", lost: str | None = None) -> None:
        self._end(name, False, int(version), lost is not None)

    def _end(self, name: str, commit: bool, version: int, lost: bool) -> None:
        request = EndTransaction(ID, self.producers[name], commit, version)
        result = self.shell.ask(self.shell.coordinator.end_transaction, request)
        if result is None:
            self.report("waits")
            return
        assert isinstance(result, EndTransactionResult)
        if result.error is not ErrorCode.NONE:
            self.report(result.error.name)
            return
        self.report("ok" if version < 2 else f"ok, next {_text(result.producer)}")
        if not lost and version >= 2:
            self.producers[name] = result.producer

    @step("{name} is a late request of {other}")
    def is_late(self, name: str, other: str) -> None:
        """`name` keeps the producer id and epoch that `other` has now."""
        self.producers[name] = self.producers[other]

    @step("the markers are written")
    def mark(self) -> None:
        self.shell.mark()

    @step("another broker takes over")
    def takes_over(self, unreplicated: str | None = None) -> None:
        """The other broker loads the log."""
        self._epoch += 1
        self.shell.restart(self._epoch, replicated=unreplicated is None)

    @step("the log is replicated")
    def is_replicated(self) -> None:
        shell = self.shell
        shell.perform(shell.coordinator.loaded_is_replicated(shell.now_ms, 0, self._epoch))

    @step("{number} {unit} pass")
    def pass_time(self, number: str, unit: str) -> None:
        """The transactions that are open for too long are aborted."""
        self.shell.pass_time(duration_ms(f"{number} {unit}"))
        self.shell.perform(self.shell.coordinator.abort_timed_out(self.shell.now_ms))

    @step("appends fail")
    def appends_fail(self) -> None:
        self.shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS

    @step("appends succeed")
    def appends_succeed(self) -> None:
        self.shell.append_error = ErrorCode.NONE

    @step("{name} has used all epochs but {count}")
    def uses_epochs(self, name: str, count: str) -> None:
        """Set the epoch of the producer; another coordinator loads this log."""
        producer = self.producers[name]
        now = read_transaction(ID, self.shell.log[-1].value or b"")
        epoch = 2**15 - 2 - int(count)
        to = Transition(
            now.state, producer.producer_id, epoch, epoch - 1, now.timeout_ms,
            frozenset(now.partitions), now.start_ms, now.last_update_ms, now.client_version,
            producer.producer_id,
        )  # fmt: skip
        self.shell.log.append(RecordData(transaction_key(ID), transaction_value(to, 1), 0))
        self.takes_over()
        self.producers[name] = Producer(producer.producer_id, epoch)
