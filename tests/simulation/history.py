"""Histories of the simulated clients: the responses that they received."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from tests.harness.faults.anomalies import History, Outcome, Send
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.transactional_clients import Fate


LEDGER = "ledger"
"""The topic that transactions write to."""


class SimHistory:
    """Histories by topic, commits by group; `lossy` are partitions that may have lost records.

    `transactions` are the fates of numbered ones; `ledger` the numbers that readers of committed
    records found at the end, by partition, and `ledger_offset` the group's.
    """

    def __init__(self, world: World) -> None:
        self.topics: dict[str, History] = {}
        self.commits: dict[str, list[int]] = {}
        self.lossy: dict[tuple[str, int], str] = {}
        self.transactions: dict[int, Fate] = {}
        self.ledger: dict[int, list[int]] = {}
        self.ledger_offset: int | None = None
        self._objections: list[tuple[str, int, str]] = []
        self._world = world

    def of(self, topic: str) -> History:
        return self.topics.setdefault(topic, History())

    def acknowledged(self, topic: str, partition: int, values: list[int], offset: int) -> None:
        """By all in-sync replicas; `offset` is the first one's, -1 if it was not said."""
        self._world.counts["records acknowledged by all in sync"] += len(values)
        for i, value in enumerate(values):
            at = offset + i if offset >= 0 else -1
            self.of(topic).sends.append(Send(partition, value, Outcome.ACKED, at))

    def committed(self, group: str, offset: int) -> None:
        self._world.counts["offsets committed"] += 1
        self.commits.setdefault(group, []).append(offset)

    def last_commit(self, group: str) -> int:
        """The largest offset whose commit was acknowledged, -1 for none."""
        return max(self.commits.get(group, ()), default=-1)

    def went_back(self, group: str, known: int, found: int) -> None:
        """A member began a generation and found less than had been acknowledged before."""
        self._object(GROUP_METADATA_TOPIC, 0, f"{group} had committed {known} and found {found}")

    def allow_loss(self, topic: str, partition: int, reason: str) -> None:
        """Kafka's own rules lost records of a partition."""
        self._world.counts["allowed losses"] += 1
        self._world.trace.note("judge", f"{topic}-{partition} may have lost records: {reason}")
        self.lossy.setdefault((topic, partition), reason)

    def out_of_order(self, topic: str, partition: int) -> None:
        """A producer with one batch under way was told that its numbers leave something out."""
        self._object(
            topic, partition, "an idempotent producer was told OUT_OF_ORDER_SEQUENCE_NUMBER"
        )

    def out_of_range(self, topic: str, partition: int, offset: int) -> None:
        """A reader was told that what it had read up to is not there."""
        self._object(topic, partition, f"offset {offset} was read, and is gone")

    def _object(self, topic: str, partition: int, what: str) -> None:
        self._world.trace.note("client", f"{topic}-{partition}: {what}")
        self._objections.append((topic, partition, what))

    @property
    def lost_of_transactions(self) -> bool:
        """Whether what transactions are made of was lost by the rules. A coordinator that has lost
        one does not end it, and readers wait (`kafkapy transactions abort` is for that)."""
        topics = (LEDGER, TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC)
        return any(topic in topics for topic, _ in self.lossy)

    def unexplained(self) -> list[str]:
        """Anomalies that clients saw and that no allowed loss explains. Call it at the end.

        Clients may reach a leader that lost records before this leader learns of its election.
        Only then do the checkers judge the loss.
        """
        return [
            f"{topic}-{partition}: {what}"
            for topic, partition, what in self._objections
            if (topic, partition) not in self.lossy
        ]
