"""Operations on one classic group, and sequences of them that a seed draws.

An operation names no id that a broker assigns: members are numbers. So the same sequence runs on
any broker.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

MEMBERS: Final = 4
STATIC: Final = {2: "i2", 3: "i2"}
"""The instance ids of members: two have the same one, so that one fences the other."""

SESSION_MS: Final = 6_000
REBALANCE_MS: Final = 5_000

KEPT, NONE, UNKNOWN = "kept", "none", "unknown"
"""The member id in a request: that of the last answer, an empty one, or one that no member has."""

Row = tuple[str, int, int, int]
"""A committed offset: topic, partition, offset, and the bytes of its metadata."""


class Join(NamedTuple):
    """JoinGroup. `protocols` are names, in the order of preference."""

    member: int
    version: int
    identity: str
    protocols: tuple[str, ...]
    protocol_type: str
    session_ms: int


class Sync(NamedTuple):
    """SyncGroup; member -1 is the current leader.

    `assigned` are the members that get an assignment; `is_named` is whether the request has the
    right protocol, or no protocol (None).
    """

    member: int
    version: int
    identity: str
    generation_shift: int
    assigned: tuple[int, ...]
    is_named: bool | None


class Heartbeat(NamedTuple):
    """Heartbeat."""

    member: int
    version: int
    identity: str
    generation_shift: int


class Leave(NamedTuple):
    """LeaveGroup of some members; several from version 3 on only."""

    members: tuple[int, ...]
    version: int
    identity: str


class Commit(NamedTuple):
    """OffsetCommit of a member, or without a member (-1)."""

    member: int
    version: int
    identity: str
    generation_shift: int
    rows: tuple[Row, ...]
    retention_ms: int


class FetchOffsets(NamedTuple):
    """OffsetFetch of all topics, or of these partitions."""

    version: int
    partitions: tuple[tuple[str, int], ...] | None
    is_stable: bool


class DeleteOffsets(NamedTuple):
    """OffsetDelete."""

    partitions: tuple[tuple[str, int], ...]


class DeleteGroup(NamedTuple):
    """DeleteGroups."""

    version: int


class Describe(NamedTuple):
    """DescribeGroups."""

    version: int


class ListStates(NamedTuple):
    """ListGroups, of groups in some states only from version 4 on."""

    version: int
    states: tuple[str, ...]


class CommitInTransaction(NamedTuple):
    """AddOffsetsToTxn and TxnOffsetCommit, of a member, or without a member (-1)."""

    member: int
    version: int
    identity: str
    generation_shift: int
    rows: tuple[Row, ...]


class EndTransaction(NamedTuple):
    """EndTxn, and its markers."""

    is_commit: bool


class TimePasses(NamedTuple):
    """Time passes while only some members send heartbeats: the others expire."""

    alive: tuple[int, ...]


Operation = (
    Join
    | Sync
    | Heartbeat
    | Leave
    | Commit
    | FetchOffsets
    | DeleteOffsets
    | DeleteGroup
    | Describe
    | ListStates
    | CommitInTransaction
    | EndTransaction
    | TimePasses
)

TOPICS: Final = ("groups-a", "groups-b")
PARTITIONS: Final = 2
_STATES: Final = ("Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Dead")


def sequence(seed: int) -> tuple[Operation, ...]:
    """The operations of a seed, in two phases with a `TimePasses` between them."""
    random = Random(seed)
    first = _phase(random)
    alive = tuple(m for m in range(MEMBERS) if random.random() < 0.6)
    return (*first, TimePasses(alive), *_phase(random))


def readings() -> tuple[Operation, ...]:
    """Operations that read everything of a group, and end its open transaction."""
    return (
        *(Describe(5), ListStates(4, ()), FetchOffsets(7, None, is_stable=False)),
        *(FetchOffsets(8, None, is_stable=True), EndTransaction(is_commit=True)),
        FetchOffsets(7, None, is_stable=True),
    )


def _phase(random: Random) -> list[Operation]:
    """Up to ten operations: all of them fit into a rebalance timeout."""
    drawn: list[Operation] = []
    most = random.randint(3, 10)
    while len(drawn) < most:
        drawn += _step(random)
    return drawn[:most]


def _step(random: Random) -> list[Operation]:
    kind = random.random()
    member = random.randrange(MEMBERS)
    if kind < 0.15:
        return _rebalance(random)
    if kind < 0.32:
        return _joins(random, member)
    if kind < 0.46:
        return [_sync(random, random.choice((-1, -1, -1, member)))]
    if kind < 0.54:
        return [Heartbeat(member, random.randint(0, 4), _identity(random), _shift(random))]
    if kind < 0.61:
        return [_leave(random, member)]
    if kind < 0.73:
        return [_commit(random)]
    if kind < 0.80:
        some = random.choice((None, _partitions(random)))
        return [FetchOffsets(random.randint(1 if some else 2, 8), some, random.random() < 0.3)]
    if kind < 0.83:
        return [DeleteOffsets(_partitions(random))]
    if kind < 0.86:
        return [DeleteGroup(random.randint(0, 2))]
    if kind < 0.91:
        return [Describe(random.randint(0, 5))]
    if kind < 0.94:
        some_states = tuple(random.sample(_STATES, random.randint(0, 2)))
        return [ListStates(random.randint(0, 4), some_states)]
    if kind < 0.98:
        member = random.choice((-1, member))
        version = random.randint(0, 3)
        return [
            CommitInTransaction(member, version, _identity(random), _shift(random), _rows(random))
        ]
    return [EndTransaction(random.random() < 0.6)]


def _rebalance(random: Random) -> list[Operation]:
    """Some members join, and the leader assigns."""
    members = random.sample(range(MEMBERS), random.randint(1, 3))
    joins = [step for member in members for step in _joins(random, member, is_plain=True)]
    syncs = [_sync(random, member) for member in members if random.random() < 0.7]
    return [*joins, *(each._replace(assigned=()) for each in syncs), _sync(random, -1)]


def _joins(random: Random, member: int, is_plain: bool = False) -> list[Operation]:
    """JoinGroup as clients send it: twice if the first answer only assigns a member id."""
    version = random.choice((0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 9))
    if member in STATIC:
        version = max(5, version)
    protocols = random.choice((("range",), ("range", "sticky"), ("sticky",), ("range", "sticky")))
    protocol_type, session_ms, identity = "consumer", SESSION_MS, KEPT
    if is_plain:
        protocols = ("range", "sticky")
    elif random.random() < 0.25:
        protocol_type = random.choice(("consumer", "connect", ""))
        session_ms = random.choice((SESSION_MS, SESSION_MS, 10, 3_600_000))
        protocols = random.choice((protocols, ()))
        identity = random.choice((KEPT, NONE, UNKNOWN))
    join = Join(member, version, identity, protocols, protocol_type, session_ms)
    if identity == KEPT and version >= 4 and member not in STATIC and random.random() < 0.9:
        return [join, join]
    return [join]


def _sync(random: Random, member: int) -> Sync:
    assigned = random.choice((tuple(range(MEMBERS)), tuple(range(MEMBERS)), (0, 2), ()))
    is_named = random.choice((True, True, True, None, False))
    version = random.randint(0, 5)
    return Sync(member, version, _identity(random), _shift(random), assigned, is_named)


def _leave(random: Random, member: int) -> Leave:
    members = tuple(random.sample(range(MEMBERS), random.choice((1, 1, 2))))
    version = random.randint(3, 5) if len(members) > 1 else random.randint(0, 5)
    return Leave(members, version, _identity(random))


def _commit(random: Random) -> Commit:
    member = random.choice((-1, *range(MEMBERS)))
    version = random.randint(2, 8)
    retention_ms = random.choice((-1, -1, 1)) if version <= 4 else -1
    shift = _shift(random)
    return Commit(member, version, _identity(random), shift, _rows(random), retention_ms)


def _identity(random: Random) -> str:
    return random.choice((KEPT,) * 14 + (NONE, UNKNOWN))


def _shift(random: Random) -> int:
    return random.choice((0,) * 10 + (-1, 1))


def _partitions(random: Random) -> tuple[tuple[str, int], ...]:
    """Partitions of topics that exist, mostly."""
    topic = random.choice((*TOPICS, *TOPICS, "groups-nowhere"))
    return tuple((topic, p) for p in random.sample(range(PARTITIONS + 1), random.randint(1, 2)))


def _rows(random: Random) -> tuple[Row, ...]:
    sizes = (0, 0, 0, 5, 4096, 4097)
    return tuple(
        (topic, partition, random.randrange(1000), random.choice(sizes))
        for topic, partition in _partitions(random)
    )
