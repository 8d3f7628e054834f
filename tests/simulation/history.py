"""Histories of the simulated clients: the responses that they received.

Kafka's own rules lose records in a few cases (`checkers/committed_logs`). A `Loss` excuses the
records between the end of the kept ones and the former log end, if the responses about them came
before it or from leaders that it replaced. All other records are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.topic_partition import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    TopicPartition,
)
from tests.harness.faults.anomalies import History, Mode, Outcome, Poll, Send, run_of
from tests.simulation.events import SECOND_US
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.harness.faults.share_anomalies import Delivery
    from tests.simulation.transactional_clients import TransactionRecord


LEDGER: Final = "ledger"
"""The topic that transactions write to."""
COPIES: Final = "copies"
"""The topic that consume-transform-produce writes to."""

GROUPS: Final = TopicPartition(GROUP_METADATA_TOPIC, 0)

_IN_FLIGHT_US: Final = SECOND_US
"""The time for which a response of before a loss may have been in flight."""


class Answer(NamedTuple):
    """The time of a broker's response, and the leader epoch in which the broker led by then."""

    epoch: int
    at_us: int


class Loss(NamedTuple):
    """Records at the offsets [kept, end) that a leader of `epoch` lacked when it began to lead."""

    kept: int
    end: int
    epoch: int
    at_us: int
    reason: str

    def touches(self, base_offset: int, next_offset: int) -> bool:
        """Whether the batch at these offsets has lost ones."""
        return self.kept < next_offset and base_offset < self.end

    def replaced(self, answer: Answer) -> bool:
        """Whether the response may describe the log before the loss."""
        return answer.epoch < self.epoch or answer.at_us <= self.at_us + _IN_FLIGHT_US

    def excuses(self, offset: int, answer: Answer) -> bool:
        """Whether a response about this offset (-1: not known) may be outdated."""
        if offset < 0:
            return self.replaced(answer)
        if answer.epoch < self.epoch:
            return offset >= self.kept
        return self.kept <= offset < self.end and self.replaced(answer)


class SimHistory:
    """Sends and polls by topic, commits by group and partition, losses by partition.

    `transactions` are those of all transactional ids, by number. `ledger` has the values that
    readers of committed records found at the end, by topic and partition, and `ledger_seen` the
    values that other readers found during the run. `ledger_offsets` are the groups' offsets by
    transactional id.
    """

    def __init__(self, world: World) -> None:
        self.losses: dict[TopicPartition, list[Loss]] = {}
        # The offsets up to which the deletion of records was requested.
        self.trimmed_to: dict[TopicPartition, int] = {}
        self.transactions: dict[int, TransactionRecord] = {}
        self.ledger: dict[TopicPartition, list[int]] = {}
        self.ledger_seen: dict[TopicPartition, list[int]] = {}
        self.ledger_offsets: dict[str, int] = {}
        self.share_deliveries: list[Delivery] = []
        # (earliest response, latest request) of fetches that carried a leader epoch.
        self.fenced_fetches: dict[tuple[int, TopicPartition, int], tuple[int, int]] = {}
        # Called with (partition, first offset, last offset) of records acknowledged with acks=all.
        self.on_acknowledged: Callable[[TopicPartition, int, int], None] = lambda *_: None
        # Called with (partition, last offset) of the records that a reader received.
        self.on_polled: Callable[[TopicPartition, int], None] = lambda *_: None
        self.epoch_led: Callable[[int, TopicPartition], int] = lambda *_: -1
        # Whether the records with which a coordinator began were replicated, by its leader epoch.
        self.was_load_replicated: Callable[[int], bool] = lambda _: True
        # Whether a group was removed, once or more.
        self.was_group_removed: Callable[[str], bool] = lambda _: False
        self._sends: dict[str, list[tuple[Answer, Send]]] = {}
        self._polls: dict[str, list[tuple[Answer, Poll]]] = {}
        self._commits: dict[str, list[tuple[Answer, int]]] = {}
        self._owners: dict[tuple[str, int], tuple[str, Answer]] = {}
        self._sent_again: dict[TopicPartition, set[int]] = {}
        self._objections: list[tuple[TopicPartition, Answer, str]] = []
        self._owner_objections: list[tuple[Answer, str]] = []
        self._world = world

    def answer(self, broker_id: int, topic: str, partition: int) -> Answer:
        """The response that a client has just received from a broker about a partition."""
        epoch = self.epoch_led(broker_id, TopicPartition(topic, partition))
        return Answer(epoch, self._world.events.now_us)

    # responses to clients

    def acknowledged(
        self, answer: Answer, topic: str, partition: int, values: list[int], offset: int
    ) -> None:
        """Record an acknowledgement with acks=all. `offset` is the first value's, -1 if unknown."""
        self._world.counts["records acknowledged by all in sync"] += len(values)
        sends = self._sends.setdefault(topic, [])
        for i, value in enumerate(values):
            at = offset + i if offset >= 0 else -1
            sends.append((answer, Send(partition, value, Outcome.ACKED, at)))
        if offset >= 0:
            self.on_acknowledged(TopicPartition(topic, partition), offset, offset + len(values) - 1)

    def sent(self, topic: str, partition: int, values: list[int]) -> None:
        """Record values that may or may not have been appended."""
        unanswered = Answer(-1, self._world.events.now_us)
        rows = [(unanswered, Send(partition, value, Outcome.UNKNOWN)) for value in values]
        self._sends.setdefault(topic, []).extend(rows)

    def polled(
        self,
        answer: Answer,
        topic: str,
        partition: int,
        consumer: tuple[str, Mode],
        found: list[tuple[int, int]],
    ) -> None:
        """Record the (offset, value) rows of one poll."""
        poll = Poll(*consumer, partition, *run_of(found))
        self._polls.setdefault(topic, []).append((answer, poll))
        if found:
            self.on_polled(TopicPartition(topic, partition), found[-1][0])

    def fetched(self, broker_id: int, at: TopicPartition, epoch: int, requested_us: int) -> None:
        """Record that a broker answered a fetch that carried this leader epoch."""
        now_us = self._world.events.now_us
        earliest, latest = self.fenced_fetches.get((broker_id, at, epoch), (now_us, requested_us))
        self.fenced_fetches[broker_id, at, epoch] = earliest, max(latest, requested_us)

    def committed(self, answer: Answer, group: str, offset: int) -> None:
        self._world.counts["offsets committed"] += 1
        self._commits.setdefault(group, []).append((answer, offset))

    def last_commit(self, group: str) -> tuple[Answer, int]:
        """The largest offset whose commit was acknowledged and not lost since, -1 for none."""
        losses = self.losses.get(GROUPS, ())
        kept = [
            (answer, offset)
            for answer, offset in self._commits.get(group, ())
            if not any(loss.replaced(answer) for loss in losses)
        ]
        return max(kept, key=lambda row: row[1], default=(Answer(-1, 0), -1))

    @property
    def groups(self) -> list[str]:
        """The groups that have committed, each with a partition."""
        return list(self._commits)

    # losses

    def trim(self, topic_partition: TopicPartition, offset: int) -> None:
        """Record a request to delete the records below an offset."""
        before = self.trimmed_to.get(topic_partition, 0)
        self.trimmed_to[topic_partition] = max(before, offset)

    def allow_loss(self, topic_partition: TopicPartition, loss: Loss) -> None:
        """Record a loss of records of a partition that Kafka's own rules allow."""
        self._world.counts["allowed losses"] += 1
        self._world.trace.note(
            "judge",
            f"{topic_partition} may have lost offsets {loss.kept} to {loss.end}: {loss.reason}",
        )
        self.losses.setdefault(topic_partition, []).append(loss)

    def may_have_lost(self, topic: str, partition: int) -> bool:
        """Whether any loss of the partition was allowed."""
        return TopicPartition(topic, partition) in self.losses

    def last_loss_us(self, topic_partition: TopicPartition) -> int:
        """The time until which responses of before the partition's last loss may arrive, -1 without
        a loss."""
        found = self.losses.get(topic_partition)
        return found[-1].at_us + _IN_FLIGHT_US if found else -1

    def is_lost(self, topic_partition: TopicPartition, offset: int, answer: Answer) -> bool:
        """Whether the contents of a response about an offset are excused."""
        losses = self.losses.get(topic_partition, ())
        return any(loss.excuses(offset, answer) for loss in losses)

    @property
    def lost_coordinator_records(self) -> bool:
        """Whether the transaction coordinator's log lost records. A lost transaction is not ended,
        and readers wait (`kafkapy transactions abort` is the remedy)."""
        return self.may_have_lost(TRANSACTION_STATE_TOPIC, 0)

    # objections

    def went_back(self, group: str, known: tuple[Answer, int], found: int) -> None:
        """Record that a member began a generation and found less than the acknowledged offset."""
        message = f"{group} had committed {known[1]} and found {found}"
        self.object_to_group(known[0], message)

    def owns(self, answer: Answer, group: str, generation: int, member: str) -> None:
        """Record that a partition was assigned to a member of a generation. A coordinator answers
        SyncGroup from the records with which it began, as Kafka's does. If they were not replicated
        while it led, the generation may begin anew."""
        owner, known = self._owners.setdefault((group, generation), (member, answer))
        if owner != member and self.was_group_removed(group.partition("/")[0]):
            self._owners[group, generation] = member, answer  # its generations restarted
        elif owner != member:
            message = f"{group} has two owners in generation {generation}: {owner} and {member}"
            self._world.trace.note("client", message)
            self._owner_objections.append((known, message))

    def object_to_group(self, known: Answer, message: str) -> None:
        """Record that the coordinator contradicted `known`, one of its earlier responses."""
        self._object(GROUP_METADATA_TOPIC, 0, known, message)

    def stale_commit(self, known: Answer, group: str, generation: int, member_id: str) -> None:
        """Record that a commit was accepted from a process that is not a member of the generation.
        `known` is the response that shows that."""
        message = f"{group} took a commit of {member_id} of generation {generation}, which was over"
        self.object_to_group(known, message)

    def out_of_order(
        self, topic: str, partition: int, known: Answer, sent_again: Iterable[int] = ()
    ) -> None:
        """Record a sequence gap in the response to a producer with one batch in flight. `known` is
        the last response before. The producer sends the values `sent_again` under another producer
        id."""
        at = TopicPartition(topic, partition)
        self._sent_again.setdefault(at, set()).update(sent_again)
        message = "an idempotent producer was told OUT_OF_ORDER_SEQUENCE_NUMBER"
        self._object(topic, partition, known, message)

    def out_of_range(self, topic: str, partition: int, offset: int, known: Answer) -> None:
        """Record that a reader's last position no longer exists."""
        self._object(topic, partition, known, f"offset {offset} was read, and is gone")

    def _object(self, topic: str, partition: int, known: Answer, message: str) -> None:
        self._world.trace.note("client", f"{topic}-{partition}: {message}")
        self._objections.append((TopicPartition(topic, partition), known, message))

    # the end

    def unexplained(self) -> list[str]:
        """Anomalies that clients observed and that no allowed loss explains. Call it at the end.

        Clients may reach a leader that lost records before this leader learns of its election. The
        checkers record the loss only then.
        """
        owners = [
            (GROUPS, known, message)
            for known, message in self._owner_objections
            if self.was_load_replicated(known.epoch)
        ]
        return [
            f"{at}: {message}"
            for at, known, message in (*self._objections, *owners)
            if not any(loss.replaced(known) for loss in self.losses.get(at, ()))
        ]

    def judged(self, topic: str) -> History:
        """The history of a topic without lost or deleted records. After a loss, readers may have
        gone back. A value that one producer sent, and then another one again, may exist twice,
        because a later leader may have the first copy again. The last one counts."""
        history = History()
        for answer, send in self._sends.get(topic, ()):
            at = TopicPartition(topic, send.partition)
            is_trimmed = send.offset < self.trimmed_to.get(at, -1)
            is_gone = is_trimmed or self.is_lost(at, send.offset, answer)
            if send.outcome is Outcome.ACKED and is_gone:
                history.sends.append(send._replace(outcome=Outcome.UNKNOWN, offset=-1))
            else:
                history.sends.append(send)
        last = self._last_sent_again(topic)
        for answer, poll in self._polls.get(topic, ()):
            at = TopicPartition(topic, poll.partition)
            if at not in self.losses:
                history.polls.append(poll)
                continue
            kept = [
                (offset, value)
                for offset, value in zip(poll.offsets, poll.values, strict=True)
                if not self.is_lost(at, offset, answer) and offset == last.get((at, value), offset)
            ]
            if kept:
                consumer = (poll.consumer, Mode.SUBSCRIBE, poll.partition)
                history.polls.append(Poll(*consumer, *run_of(kept)))
        return history

    def _last_sent_again(self, topic: str) -> dict[tuple[TopicPartition, int], int]:
        """The last offset at which each value that was sent again was read and is not lost."""
        found: dict[tuple[TopicPartition, int], int] = {}
        for answer, poll in self._polls.get(topic, ()):
            at = TopicPartition(topic, poll.partition)
            sent_again = self._sent_again.get(at, ())
            for offset, value in zip(poll.offsets, poll.values, strict=True):
                if value in sent_again and not self.is_lost(at, offset, answer):
                    found[at, value] = max(offset, found.get((at, value), -1))
        return found

    @property
    def topics(self) -> list[str]:
        """The topics that were written or read."""
        return list(dict.fromkeys([*self._sends, *self._polls]))

    def values_at(self, topic: str, partition: int) -> dict[int, int]:
        """The values that readers found, by offset."""
        return {
            offset: value
            for _, poll in self._polls.get(topic, ())
            if poll.partition == partition
            for offset, value in zip(poll.offsets, poll.values, strict=True)
        }
