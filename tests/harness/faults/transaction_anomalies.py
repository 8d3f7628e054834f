"""Finds Jepsen's anomalies in transactions that clients ran on a cluster under faults.

A transaction sends and polls records. Values are unique within a partition. `anomalies` checks
single records: a record counts as acknowledged if its transaction committed, and as failed if
commit was never called. The definitions are those of `jepsen.tests.kafka`:

| anomaly               | what it is                                                              |
|-----------------------|-------------------------------------------------------------------------|
| G0                    | a cycle of transactions by the order of their records; Kafka allows it   |
| G1a                   | a record of an aborted transaction was polled                            |
| G1b                   | polled before its commit was called, by its own transaction, or in part  |
| G1c                   | a cycle of transactions, each of which polled a record of the one before |
| nonmonotonic-send     | a producer's records are not in the order in which it sent them          |
| int-nonmonotonic-send | the same within one transaction                                          |
| int-send-skip         | others' records are between those of a transaction; Kafka allows it      |
| int-poll-skip         | a transaction's polls leave out a record that exists                     |
| int-nonmonotonic-poll | a transaction's polls go backwards                                       |
| zombie-commit         | an instance committed what it began after a later one was initialized    |
| inexact-copy          | a copied topic is not what precedes the committed offsets of its source  |
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import NamedTuple

from tests.harness.faults import anomalies
from tests.harness.faults.anomalies import History, Outcome, Send

ALLOWED = ("G0", "int-send-skip")
"""Anomalies that are only reported: concurrent transactions write to one log by turns."""

_RENAMED = {"aborted-read": "G1a", "reordered": "nonmonotonic-send"}
ANOMALIES = (
    *(_RENAMED.get(name, name) for name in anomalies.ANOMALIES),
    *("G0", "G1b", "G1c", "int-nonmonotonic-send", "int-send-skip", "int-poll-skip"),
    *("int-nonmonotonic-poll", "zombie-commit", "inexact-copy"),
)

Found = Iterator[tuple[str, str]]


class TransactionOutcome(Enum):
    """Result of a transaction, from its producer's responses."""

    COMMITTED = "committed"
    ABORTED = "aborted"  # commit was never called
    UNKNOWN = "unknown"


_SEND_OUTCOMES = {
    TransactionOutcome.COMMITTED: Outcome.ACKED,
    TransactionOutcome.ABORTED: Outcome.FAILED,
    TransactionOutcome.UNKNOWN: Outcome.UNKNOWN,
}


class Key(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(slots=True)
class SentRecord:
    """A record that a transaction sent; the offset is -1 until it is known."""

    key: Key
    value: int
    offset: int = -1


class PolledRecords(NamedTuple):
    """Records of one partition from one poll of a transaction."""

    key: Key
    offsets: list[int]
    values: list[int]


@dataclass
class Instance:
    """A producer with a transactional id: the times of the call and the end of its initialization.

    All times are those of one clock.
    """

    transactional_id: str
    name: str
    init_called: float
    init_done: float = inf


@dataclass
class Transaction:
    """A transaction of an instance. `commit_called` is infinite until commit is called."""

    instance: Instance
    began: float
    sent: list[SentRecord] = field(default_factory=list)
    polled: list[PolledRecords] = field(default_factory=list)
    commit_called: float = inf
    outcome: TransactionOutcome = TransactionOutcome.ABORTED

    def __str__(self) -> str:
        return f"{self.outcome.value} transaction of {self.instance.name} begun at {self.began:.3f}"


class CopiedTopic(NamedTuple):
    """A topic that transactions copied from another, partition by partition.

    `committed` are the offsets of the source that they committed. `origin` has the source's value
    by the copy's.
    """

    source: str
    target: str
    committed: Mapping[int, int]
    origin: Mapping[int, int]


class TransactionHistory:
    """Transactions, and by topic the sends and polls outside of them.

    `topics` has all polls, also those of transactions. Call `judge` once all readers are drained.
    """

    def __init__(self, topics: Iterable[str]) -> None:
        self.topics = {topic: History() for topic in topics}
        self.transactions: list[Transaction] = []
        self.copied: list[CopiedTopic] = []

    def judge(self) -> dict[str, list[str]]:
        """Each anomaly's name, and the cases found."""
        found: dict[str, list[str]] = {name: [] for name in ANOMALIES}
        view = _View(self)
        for topic, history in view.topics.items():
            for name, cases in history.judge().items():
                found[_RENAMED.get(name, name)] += [f"{topic}: {case}" for case in cases]
        for name, case in view.anomalies():
            found[name].append(case)
        return found


class _View:
    """The visible records of all partitions in their order, and the transaction of each."""

    def __init__(self, history: TransactionHistory) -> None:
        self._transactions = history.transactions
        self._copied = history.copied
        self._writer: dict[tuple[Key, int], Transaction] = {}
        self.topics = {topic: History() for topic in history.topics}
        for topic, given in history.topics.items():
            self.topics[topic].sends += given.sends
            self.topics[topic].polls = given.polls
        for txn in history.transactions:
            for sent in txn.sent:
                send = Send(
                    sent.key.partition, sent.value, _SEND_OUTCOMES[txn.outcome], sent.offset
                )
                self.topics[sent.key.topic].sends.append(send)
                self._writer[sent.key, sent.value] = txn
        self._offset_of: dict[tuple[Key, int], int] = {}
        self._polled_at: dict[tuple[Key, int], float] = {}
        for topic, given in self.topics.items():
            self._add_history(topic, given)
        self._log: dict[Key, list[tuple[int, int]]] = defaultdict(list)
        for (key, value), offset in self._offset_of.items():
            self._log[key].append((offset, value))
        for log in self._log.values():
            log.sort()

    def _add_history(self, topic: str, history: History) -> None:
        for poll in history.polls:
            key = Key(topic, poll.partition)
            for offset, value in zip(poll.offsets, poll.values, strict=True):
                self._offset_of[key, value] = offset
                self._polled_at[key, value] = min(
                    poll.at, self._polled_at.get((key, value), poll.at)
                )
        for send in history.sends:
            if send.outcome is Outcome.ACKED and send.offset >= 0:
                self._offset_of.setdefault((Key(topic, send.partition), send.value), send.offset)

    def anomalies(self) -> Found:
        for txn in self._transactions:
            yield from self._intermediate_reads(txn)
            yield from self._sends(txn)
            yield from self._polls(txn)
        for cycle in cycles(self._write_order()):
            yield "G0", _describe_cycle(cycle)
        for cycle in cycles(self._read_order()):
            yield "G1c", _describe_cycle(cycle)
        yield from self._zombies()
        for copied in self._copied:
            yield from self._copies(copied)

    def _intermediate_reads(self, txn: Transaction) -> Found:
        own = {(sent.key, sent.value) for sent in txn.sent}
        seen = {record for record in own if record in self._polled_at}
        for key, value in sorted(seen):
            if (
                txn.outcome is not TransactionOutcome.ABORTED
                and self._polled_at[key, value] < txn.commit_called
            ):
                yield "G1b", f"{key} value {value} polled before the commit of the {txn}"
        for poll in txn.polled:
            for value in poll.values:
                if (poll.key, value) in own:
                    yield "G1b", f"{poll.key} value {value} polled by its own {txn}"
        if txn.outcome is TransactionOutcome.UNKNOWN and seen and seen != own:
            yield "G1b", f"polled {len(seen)} of {len(own)} records of the {txn}: {own - seen}"

    def _sends(self, txn: Transaction) -> Found:
        last: dict[Key, int] = {}
        for sent in txn.sent:
            offset = sent.offset
            if offset < 0:
                offset = self._offset_of.get((sent.key, sent.value), -1)
            if offset < 0:
                continue
            before = last.get(sent.key, -1)
            if offset <= before:
                yield (
                    "int-nonmonotonic-send",
                    f"{sent.key} offset {offset} after {before} by the {txn}",
                )
            elif before >= 0 and self._between(sent.key, before, offset):
                yield "int-send-skip", f"{sent.key} offset {offset} after {before} by the {txn}"
            last[sent.key] = offset

    def _polls(self, txn: Transaction) -> Found:
        last: dict[Key, int] = {}
        for poll in txn.polled:
            for offset in poll.offsets:
                before = last.get(poll.key)
                step = f"{poll.key} offset {offset} after {before} by the {txn}"
                if before is not None and offset <= before:
                    yield "int-nonmonotonic-poll", step
                elif before is not None and self._between(poll.key, before, offset):
                    yield "int-poll-skip", step
                last[poll.key] = offset

    def _between(self, key: Key, low: int, high: int) -> int:
        """Count the known records between two offsets."""
        log = self._log[key]
        return bisect_left(log, (high, -1)) - bisect_left(log, (low + 1, -1))

    def _write_order(self) -> dict[int, set[int]]:
        """Edges from each transaction to those whose records follow its own, in any partition."""
        number = {id(txn): n for n, txn in enumerate(self._transactions)}
        edges: dict[int, set[int]] = defaultdict(set)
        for key, log in self._log.items():
            before = None
            for _, value in log:
                writer = self._writer.get((key, value))
                if writer is not None and before is not None and writer is not before:
                    edges[number[id(before)]].add(number[id(writer)])
                before = writer or before
        return edges

    def _read_order(self) -> dict[int, set[int]]:
        """Edges from each transaction to those that polled its records."""
        number = {id(txn): n for n, txn in enumerate(self._transactions)}
        edges: dict[int, set[int]] = defaultdict(set)
        for reader, txn in enumerate(self._transactions):
            for poll in txn.polled:
                for value in poll.values:
                    writer = self._writer.get((poll.key, value))
                    if writer is not None and writer is not txn:
                        edges[number[id(writer)]].add(reader)
        return edges

    def _zombies(self) -> Found:
        initialized: dict[str, list[Instance]] = defaultdict(list)
        for instance in {id(txn.instance): txn.instance for txn in self._transactions}.values():
            initialized[instance.transactional_id].append(instance)
        for txn in self._transactions:
            if txn.outcome is not TransactionOutcome.COMMITTED or not txn.sent:
                continue  # the commit of an empty transaction sends no request
            for later in initialized[txn.instance.transactional_id]:
                if later.init_called > txn.instance.init_done and later.init_done < txn.began:
                    yield "zombie-commit", f"{txn}, after {later.name} was initialized"

    def _copies(self, copied: CopiedTopic) -> Found:
        for partition, end in sorted(copied.committed.items()):
            source = self._log[Key(copied.source, partition)]
            wanted = Counter(value for offset, value in source if offset < end)
            copies = (value for _, value in self._log[Key(copied.target, partition)])
            made = Counter(copied.origin[value] for value in copies if value in copied.origin)
            extra, missing = sorted((made - wanted).elements()), sorted(wanted - made)
            if extra or missing:
                yield (
                    "inexact-copy",
                    f"{copied.target}-{partition} up to the committed offset {end}: {len(extra)}"
                    f" too many {extra[:5]}, {len(missing)} missing {missing[:5]}",
                )


def cycles(edges: Mapping[int, set[int]]) -> list[list[int]]:
    """The strongly connected components of more than one node (Tarjan's algorithm)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    found: list[list[int]] = []
    for root in edges:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        path = [(root, iter(edges[root]))]
        while path:
            node, rest = path[-1]
            below = next(rest, None)
            if below is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    component = [stack.pop()]
                    while component[-1] != node:
                        component.append(stack.pop())
                    low.update(dict.fromkeys(component, sys.maxsize))  # closes no cycle any more
                    if len(component) > 1:
                        found.append(sorted(component))
            elif below not in index:
                index[below] = low[below] = len(index)
                stack.append(below)
                path.append((below, iter(edges.get(below, ()))))
            else:
                low[node] = min(low[node], low[below])
    return found


def _describe_cycle(cycle: list[int]) -> str:
    return f"{len(cycle)} transactions, numbers {cycle[:5]}"
