"""Operations on one partition, and sequences of them that a seed draws.

An operation names no id that a broker assigns: producers are numbers, offsets are shares of the
log. So the same sequence runs on any broker.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from kafkapy.record.codec import Codec

TRANSACTIONAL: Final = (0, 1)
"""Producers with a transactional id; the others are idempotent only."""

IDEMPOTENT: Final = (2, 3)

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3

ZSTD_VERSION: Final = 7
"""The first version of Produce that may have zstd."""

DAMAGES: Final = ("crc", "length", "truncated", "control")

_KEYS: Final = (b"a", b"b", b"c", None)
_SIZES: Final = (0, 1, 10, 100, 900)


class Row(NamedTuple):
    """A record; it is `age_ms` older than the run. `header_bytes` is -1 without a header."""

    key: bytes | None
    value: bytes | None
    age_ms: int
    header_bytes: int

    def __repr__(self) -> str:
        return f"{tuple(self)}"


class Batch(NamedTuple):
    """A record batch. Shifts are added to the next sequence and the current epoch; `damage` is one
    of DAMAGES, or none.
    """

    rows: tuple[Row, ...]
    codec: Codec = Codec.NONE
    sequence_shift: int = 0
    epoch_shift: int = 0
    is_transactional: bool = False
    damage: str = ""


class Produce(NamedTuple):
    """A Produce request with these batches of a producer (None: not idempotent)."""

    producer: int | None
    batches: tuple[Batch, ...]
    version: int
    acks: int = -1

    @property
    def faults(self) -> int:
        """The number of reasons to refuse the request; a broker names one of them."""
        found = int(len(self.batches) != 1)
        for batch in self.batches:
            found += bool(batch.damage) + bool(batch.epoch_shift) + bool(batch.sequence_shift)
            found += batch.is_transactional
            found += batch.codec is Codec.ZSTD and self.version < ZSTD_VERSION
        return found


class ProduceOld(NamedTuple):
    """A Produce request with messages of magic 0 (version 0 and 1) or 1 (version 2)."""

    rows: tuple[Row, ...]
    codec: Codec
    version: int


class InitProducer(NamedTuple):
    """InitProducerId; with `keeps`, it has the current id and epoch of the producer."""

    producer: int
    keeps: bool


class AddPartition(NamedTuple):
    """AddPartitionsToTxn."""

    producer: int
    epoch_shift: int = 0


class EndTransaction(NamedTuple):
    """EndTxn."""

    producer: int
    is_commit: bool
    epoch_shift: int = 0


class DeleteRecords(NamedTuple):
    """Delete up to a share of the log in thousandths; -1 for the high watermark."""

    per_mille: int


class ListOffsets(NamedTuple):
    """The offset of a time: EARLIEST, LATEST, MAX_TIMESTAMP, or an age in ms."""

    time: int
    isolation_level: int
    version: int


class Fetch(NamedTuple):
    """Records from a share of the log."""

    per_mille: int
    isolation_level: int
    max_bytes: int
    version: int


class ReadAll(NamedTuple):
    """Fetch all records, with as many requests as needed."""

    isolation_level: int


class DescribeProducers(NamedTuple):
    """DescribeProducers."""


class EpochEnd(NamedTuple):
    """OffsetForLeaderEpoch."""

    leader_epoch: int


Operation = (
    Produce
    | ProduceOld
    | InitProducer
    | AddPartition
    | EndTransaction
    | DeleteRecords
    | ListOffsets
    | Fetch
    | ReadAll
    | DescribeProducers
    | EpochEnd
)

TOPIC_CONFIGS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"segment.bytes": "2000", "index.interval.bytes": "0"},
    {"segment.bytes": "5000", "index.interval.bytes": "300", "max.message.bytes": "1500"},
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact,delete", "segment.bytes": "3000"},
    {"compression.type": "zstd"},
    {"compression.type": "gzip", "max.message.bytes": "800"},
    {"compression.type": "uncompressed", "segment.bytes": "4000"},
    {"message.timestamp.before.max.ms": "600000"},
    {"segment.ms": "1000", "segment.bytes": "100000"},
)
"""Configs that the topics of a run have in turn. None of their times passes during a run."""


def sequence(seed: int) -> tuple[Operation, ...]:
    """The operations of a seed."""
    random = Random(seed)
    drawn: list[Operation] = []
    open_transactions: set[int] = set()
    for _ in range(random.randint(4, 24)):
        for operation in _step(random):
            match operation:
                case AddPartition(producer):
                    open_transactions.add(producer)
                case EndTransaction(producer, epoch_shift=0):
                    open_transactions.discard(producer)
                case InitProducer(producer) if producer in open_transactions:
                    # Apache Kafka aborts the transaction, and fences producers that keep the epoch.
                    operation = InitProducer(producer, keeps=False)
                    open_transactions.discard(producer)
            drawn.append(operation)
    return tuple(drawn)


def readings(are_whole: bool = True) -> tuple[Operation, ...]:
    """Operations that read everything of a partition.

    Without `are_whole`, they leave out state that Apache Kafka and kafkapy treat differently when
    they load a log without records.
    """
    offsets = (ListOffsets(time, level, 7) for time in (EARLIEST, LATEST) for level in (0, 1))
    records = (ReadAll(level) for level in (0, 1))
    more = (ListOffsets(MAX_TIMESTAMP, 0, 7), DescribeProducers())
    return (*offsets, *records, *(more if are_whole else ()))


def _step(random: Random) -> list[Operation]:
    kind = random.random()
    if kind < 0.40:
        return [_produce(random)]
    if kind < 0.45:
        version = random.randint(0, 2)
        codec = random.choice((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY))
        return [ProduceOld(_rows(random, is_old=True), codec, version)]
    if kind < 0.52:
        return [InitProducer(random.choice((*TRANSACTIONAL, *IDEMPOTENT)), random.random() < 0.5)]
    if kind < 0.70:
        return _transaction(random)
    if kind < 0.76:
        return [DeleteRecords(random.choice((-1, 0, 100, 500, 900, 1000, 1001)))]
    if kind < 0.84:
        time = random.choice((EARLIEST, LATEST, MAX_TIMESTAMP, random.randrange(1_000_000)))
        version = random.randint(7, 9) if time == MAX_TIMESTAMP else random.randint(1, 9)
        return [ListOffsets(time, random.randint(0, 1), version)]
    if kind < 0.95:
        max_bytes = random.choice((1, 100, 1000, 1 << 20))
        where = random.choice((0, 0, 250, 500, 999, 1000, 1001, -1))
        return [Fetch(where, random.randint(0, 1), max_bytes, random.randint(4, 12))]
    if kind < 0.98:
        return [DescribeProducers()]
    return [EpochEnd(random.randint(0, 2))]


def _transaction(random: Random) -> list[Operation]:
    """A transaction as clients send it, or with a step that is wrong or missing."""
    producer = random.choice(TRANSACTIONAL)
    shift = random.choice((0, 0, 0, 0, 0, 0, -1, 1))
    steps: list[Operation] = []
    if random.random() < 0.9:
        steps.append(AddPartition(producer, shift))
    for _ in range(random.randint(0, 3)):
        batch = _batch(random)
        # A batch of a later epoch makes Apache Kafka refuse later batches of the current epoch.
        batch = batch._replace(is_transactional=True, epoch_shift=min(0, batch.epoch_shift))
        first_version = ZSTD_VERSION if batch.codec is Codec.ZSTD else 3
        steps.append(Produce(producer, (batch,), random.randint(first_version, 11)))
    if random.random() < 0.8:
        steps.append(EndTransaction(producer, random.random() < 0.5, shift))
    return steps


def _produce(random: Random) -> Produce:
    producer = random.choice((None, None, *IDEMPOTENT, *IDEMPOTENT))
    count = random.choice((1, 1, 1, 1, 1, 1, 1, 0, 2))
    batches = tuple(_batch(random) for _ in range(count))
    if count > 1:
        # Apache Kafka appends the first batch and drops a damaged second one; kafkapy refuses both.
        batches = tuple(each._replace(damage="") for each in batches)
    return Produce(producer, batches, random.randint(3, 11), random.choice((-1, -1, 1)))


def _batch(random: Random) -> Batch:
    codec = random.choice((Codec.NONE, Codec.NONE, *Codec))
    sequence_shift = random.choice((0,) * 8 + (-1, -2, -7, 1, 5))
    epoch_shift = random.choice((0,) * 12 + (-1, 1, 2))
    damage = random.choice(("",) * 25 + DAMAGES)
    return Batch(_rows(random), codec, sequence_shift, epoch_shift, False, damage)


def _rows(random: Random, is_old: bool = False) -> tuple[Row, ...]:
    keys = _KEYS if random.random() < 0.3 else _KEYS[:3]
    age_ms = random.randrange(1_000_000)
    rows = []
    for _ in range(random.choice((1, 1, 1, 2, 3, 5, 12))):
        value = None if random.random() < 0.1 else bytes([65 + random.randrange(26)])
        if value is not None:
            value *= random.choice(_SIZES)
        header_bytes = -1 if is_old or random.random() < 0.9 else random.choice((0, 5))
        rows.append(Row(random.choice(keys), value, age_ms, header_bytes))
        age_ms = max(0, age_ms + random.choice((-100, -1, 0, 0, 1, 70)))
    return tuple(rows)
