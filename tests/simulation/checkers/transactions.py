"""Check that transactions are whole: committed ones are read once everywhere, aborted ones nowhere.

During the run, readers of committed records find the same as at its end: no undecided or aborted
records, in the order of the log. Records copied by consume-transform-produce exist once.
Transactions that began before an allowed loss of their partition are excused.
"""

from __future__ import annotations

from collections import Counter

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import TOPIC
from tests.simulation.history import COPIES, LEDGER
from tests.simulation.transactional_clients import ID_STEP, Fate, TransactionRecord


class Transactions(Checker):
    """Compares the values that readers of committed records found, and the groups' offsets, with
    the producers' responses."""

    def on_end(self) -> None:
        history = self.cluster.history
        self._check_readers()
        if history.lost_coordinator_records:
            return
        counts = {
            at: Counter(values) for at, values in history.ledger.items() if at.topic == LEDGER
        }
        for number, record in history.transactions.items():
            self._check_transaction(number, record, counts)
        for at, values in history.ledger.items():
            if at.topic == LEDGER:
                self._check_order(at, values)
        self._check_copies()

    def _check_readers(self) -> None:
        history = self.cluster.history
        for at, values in history.ledger.items():
            seen = history.ledger_seen[at]
            if seen != values:
                extra = sorted((Counter(seen) - Counter(values)).elements())
                missing = sorted((Counter(values) - Counter(seen)).elements())
                self.violated(
                    f"a reader of committed records of {at} found {extra} that are not there at the"
                    f" end, and not {missing}; {len(seen)} values in all"
                )

    def _check_transaction(
        self, number: int, record: TransactionRecord, counts: dict[TopicPartition, Counter[int]]
    ) -> None:
        """Check one transaction. Partitions with a loss since its start do not count."""
        history = self.cluster.history
        found = [
            count[number]
            for at, count in counts.items()
            if record.begun_us > history.last_loss_us(at)
        ]
        allowed = {
            Fate.COMMITTED: found == [1] * len(found),
            Fate.ABORTED: found == [0] * len(found),
            Fate.UNKNOWN: found in ([0] * len(found), [1] * len(found)),
        }
        if not allowed[record.fate]:
            self.violated(f"transaction {number}, {record.fate.value}, is read {found} times")

    def _check_order(self, at: TopicPartition, values: list[int]) -> None:
        history = self.cluster.history
        by_id: dict[int, list[int]] = {}
        for value in values:
            by_id.setdefault(value // ID_STEP, []).append(value)
        for index, found in by_id.items():
            if found != sorted(found):
                self.violated(f"{at} has the transactions of id {index} out of order: {found}")
        for name, offset in history.ledger_offsets.items():
            if not name.startswith("bookkeeper-"):
                continue
            found = by_id.get(int(name.removeprefix("bookkeeper-")), [])
            last = found[-1] + 1 if found else -1
            if offset != last:
                self.violated(f"the offset that {name} committed is {offset}, not {last}")

    def _check_copies(self) -> None:
        history = self.cluster.history
        copies = history.ledger.get(TopicPartition(COPIES, 0))
        end = history.ledger_offsets.get("transformer")
        lost = history.may_have_lost(TOPIC, 0) or history.may_have_lost(GROUP_METADATA_TOPIC, 0)
        if copies is None or end is None or lost:
            return
        source = history.values_at(TOPIC, 0)
        wanted = [source[offset] for offset in sorted(source) if offset < end]
        if copies != wanted:
            more, fewer = Counter(copies) - Counter(wanted), Counter(wanted) - Counter(copies)
            self.violated(
                f"up to offset {end} {len(wanted)} records were to be copied, {len(copies)} are:"
                f" {sorted(more.elements())} too many, {sorted(fewer.elements())} missing, or in"
                " another order"
            )
