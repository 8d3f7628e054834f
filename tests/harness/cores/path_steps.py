"""Strategies of `path_worlds.Step`: events at a broker with producers and followers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

from kafkapy.common.cluster_state import LEADER_DURING_DELETE
from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.protocol.headers import encode_request
from kafkapy.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkapy.record.batch_header import HEADER
from kafkapy.security.acls import Operation
from tests.harness.cores import path_worlds as worlds
from tests.harness.cores.path_worlds import Step, World
from tests.harness.cores.ports import NOW_MS
from tests.harness.storage.batches import patched
from tests.harness.storage.partitions import TOPIC_ID, batch

TRANSACTIONAL: Final = 0x10
PLAIN: Final = batch(2, NOW_MS)


def _producer(sequence: int, **fields: int) -> bytes:
    return patched(
        batch(1, NOW_MS), **{"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence,
                             **fields}
    )  # fmt: skip


RECORDS: Final[dict[str, bytes]] = {
    "plain": PLAIN,
    "another": batch(1, NOW_MS, b"w"),
    "wrong CRC": patched(PLAIN, crc=1),
    "wrong magic": patched(PLAIN, magic=3),
    "not a batch": b"x",
    "cut": PLAIN[:-1],
    "header only": PLAIN[: HEADER.size],
    "nothing": b"",
    "two batches": PLAIN + PLAIN,
    "too large": batch(1, NOW_MS, b"v" * (worlds.TOPIC_BYTES_MAX + 1)),
    **{f"sequence {n}": _producer(n) for n in range(4)},
    **{f"transaction {n}": _producer(n, attributes=TRANSACTIONAL) for n in range(4)},
    "transaction of an old epoch": _producer(0, attributes=TRANSACTIONAL, producer_epoch=-1),
    "transaction of nobody": patched(batch(1, NOW_MS), attributes=TRANSACTIONAL),
}
GOOD: Final = ("plain", "another", "sequence 0", "sequence 1", "transaction 0", "transaction 1")
IDS: Final = {"t": TOPIC_ID, "unknown": Uuid(bytes([7] * 16))}
"""Topic ids of requests that have ids. The metadata has only the first one."""
_TOPICS: Final = ("t", "u", "unknown", "__consumer_offsets", "__transaction_state")


def request(
    topic: str, index: int, records: bytes | None, acks: int, transactional_id: str | None
) -> ProduceRequest:
    row = PartitionProduceData(index=index, records=records)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(name=topic, topic_id=IDS.get(topic, ZERO_UUID), partition_data=[row])
        ],
    )


def produce(
    client: int, version: int, acks: int, transactional_id: str | None, topic: str,
    client_id: str, rows: list[tuple[str, int]], together: bool,
    fault: Callable[[Any], Exception] | None,
) -> Step:  # fmt: skip
    """Requests that are alike but for their partition and records."""

    def apply(world: World) -> None:
        client_connection = world.clients[client]
        data = b""
        for number, (name, index) in enumerate([("plain", 0)] * 2 + rows):
            if number == 2 and fault is not None:
                world.fault = fault
            client_connection.correlation_id += 1
            message = request(topic, index, RECORDS[name], acks, transactional_id)
            frame = encode_request(message, version, client_connection.correlation_id, client_id)
            if together:
                data += frame
            else:
                client_connection.receive(frame)
        if data:
            client_connection.receive(data)

    with_fault = f" {fault.__name__}" if fault is not None else ""
    how = f"{client}: v{version} acks={acks} {transactional_id} {topic} {client_id} {rows}"
    return Step(f"produce {how}{' together' * together}{with_fault}", apply)


_rows = st.lists(
    st.tuples(st.one_of(st.sampled_from(GOOD), st.sampled_from(sorted(RECORDS))),
              st.sampled_from((0, 0, 0, 1, 9))),
    min_size=1, max_size=5,
)  # fmt: skip
produces = st.builds(
    produce,
    st.sampled_from((0, 0, 1)),
    st.sampled_from((9, 13, 9, 3, 5, 7, 8, 10, 11)),
    st.sampled_from((-1, 1, 0, -1, 1, 0, 2)),
    st.sampled_from((None, None, None, "x", "y")),
    st.sampled_from((*("t",) * 6, *("u",) * 2, *_TOPICS[2:])),
    st.sampled_from(("me", "me", "me", "__admin_client", "limited")),
    _rows,
    st.booleans(),
    st.sampled_from((*(None,) * 9, worlds.has_fault, worlds.has_late_fault, worlds.disk_fails)),
)


def append_to_both(client: int, version: int, acks: int, first: str, second: str) -> Step:
    def apply(world: World) -> None:
        message = request("t", 0, RECORDS[first], acks, None)
        message.topic_data += request("u", 0, RECORDS[second], acks, None).topic_data
        world.clients[client].send(version, message)

    return Step(f"produce {client}: v{version} acks={acks} t {first}, u {second}", apply)


two_topics = st.builds(
    append_to_both, st.integers(0, 1), st.sampled_from((9, 11, 13)), st.sampled_from((-1, 0, 1)),
    st.sampled_from(sorted(RECORDS)), st.sampled_from(sorted(RECORDS)),
)  # fmt: skip


# fetches of followers


Round = tuple[list[int], dict[str, Any], bool, str]


def fetch(which: int, rounds: list[Round]) -> Step:
    """A follower continues its session, sometimes with an unusual fetch; then the records that it
    waits for arrive, or do not."""

    def apply(world: World) -> None:
        for named, change, drops_partition, then in rounds:
            follower = world.followers[which]
            if follower.session == (0, 0):
                _fetch(world, which, [0, 1], {"max_wait_ms": 0}, False)
                world.settle()
            if then == "records before":
                _append(world, 0)
            _fetch(world, which, named, change, drops_partition)
            world.settle()
            if then == "time":
                _advance(600)(world)
            elif then == "records after":
                _append(world, named[0] if named else 0)
            elif then == "other records":
                _append(world, 1)
            world.settle()

    return Step(f"fetch of {which + 2}: {rounds}", apply)


def _append(world: World, index: int) -> None:
    """Append as another producer, acks=1."""
    world.others.send(9, request("t", index, PLAIN, 1, None))


def _fetch(
    world: World, which: int, named: list[int], change: dict[str, Any], drops_partition: bool
) -> None:
    follower = world.followers[which]
    terms = {
        "max_wait_ms": 500, "max_bytes": 1 << 20, "row_bytes": 1 << 20, "offset": 0,
        "leader_epoch": 0, "fetched_epoch": 0, "log_start_offset": 0, "session_epoch": 0,
        "min_bytes": 1, "isolation": 0, "replica_id": follower.broker_id,
        "version": follower.version, **change,
    }  # fmt: skip
    rows = [
        FetchPartition(
            partition=index,
            current_leader_epoch=world.epochs["t"] + terms["leader_epoch"],
            fetch_offset=max(0, follower.offsets[index] + terms["offset"]),
            last_fetched_epoch=follower.epochs[index] + terms["fetched_epoch"],
            log_start_offset=terms["log_start_offset"],
            partition_max_bytes=terms["row_bytes"],
        )
        for index in named
    ]
    session_id, epoch = follower.session
    message = FetchRequest(
        replica_state=ReplicaState(replica_id=terms["replica_id"], replica_epoch=1),
        max_wait_ms=terms["max_wait_ms"],
        min_bytes=terms["min_bytes"],
        max_bytes=terms["max_bytes"],
        isolation_level=terms["isolation"],
        session_id=session_id,
        session_epoch=epoch + terms["session_epoch"] if session_id else 0,
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=rows)] if rows else [],
        forgotten_topics_data=[ForgottenTopic(topic_id=TOPIC_ID, partitions=[1])]
        if drops_partition
        else [],
    )
    if session_id:
        follower.session = (session_id, epoch + 1)
    follower.client.send(terms["version"], message, f"follower-{follower.broker_id}")


_ODD: Final[tuple[dict[str, Any], ...]] = (
    {"offset": 1}, {"offset": -1}, {"leader_epoch": -1}, {"leader_epoch": 1},
    {"fetched_epoch": 1}, {"fetched_epoch": -1}, {"log_start_offset": 1}, {"session_epoch": 1},
    {"max_bytes": 1}, {"row_bytes": 1}, {"row_bytes": 0}, {"min_bytes": 1000}, {"min_bytes": 0},
    {"isolation": 1}, {"replica_id": 4}, {"replica_id": -1}, {"version": 15}, {"max_wait_ms": 0},
)  # fmt: skip
_rounds = st.lists(
    st.tuples(
        st.sampled_from(([0], [0], [0], [1], [0, 1], [])),
        st.sampled_from((*({},) * 40, *_ODD)),
        st.sampled_from((False,) * 15 + (True,)),
        st.sampled_from(("records after", "records before", "time", "other records", "nothing")),
    ),
    min_size=1, max_size=6,
)  # fmt: skip
fetches = st.builds(fetch, st.sampled_from((0, 0, 1)), _rounds)


# other events


def _step(description: str, apply: Callable[[World], object]) -> Step:
    return Step(description, lambda world: apply(world) and None)


def _fails(fault: Callable[[Any], Exception]) -> Callable[[World], None]:
    def apply(world: World) -> None:
        world.fault = fault

    return apply


def _limit(user: str, **configs: object) -> Callable[[World], None]:
    return lambda world: world.parts.client_quotas.update(
        "users", user, {name: str(value) for name, value in configs.items()}
    )


def _advance(ms: int) -> Callable[[World], None]:
    def apply(world: World) -> None:
        world.parts.clock.now_ms += ms
        world.catching(world.parts.timers.fire)

    return apply


def _coordinator(error: ErrorCode) -> Callable[[World], None]:
    def apply(world: World) -> None:
        world.coordinator_error = error

    return apply


def _coordinator_answers(world: World) -> None:
    waiting, world.pending_answers = world.pending_answers, []
    for answer in waiting:
        world.catching(answer)


def _change_principal(client: int, principal: str) -> Callable[[World], None]:
    def apply(world: World) -> None:
        world.clients[client].principal = principal
        world.clients[client].connection.principal = principal

    return apply


def _replication_limit(limit: int | None) -> Callable[[World], None]:
    def apply(world: World) -> None:
        world.parts.replicas.quotas.leader.limit = limit

    return apply


def _drop_sessions(world: World) -> None:
    world.parts.fetch_sessions._sessions.clear()


EVENTS: Final = (
    _step("the disk fails", _fails(worlds.disk_fails)),
    _step("an append has a fault", _fails(worlds.has_fault)),
    _step("an append has a fault", _fails(worlds.has_fault)),
    _step("an append has a late fault", _fails(worlds.has_late_fault)),
    _step("quota of a", _limit("a", producer_byte_rate=100)),
    _step("large quota of a", _limit("a", producer_byte_rate=10**9)),
    _step("quota of others", _limit("z", producer_byte_rate=1)),
    _step("mutation quota of a", _limit("a", controller_mutation_rate=1)),
    _step("no quota", lambda w: [_limit(user)(w) for user in "az"]),
    _step("5 ms pass", _advance(5)),
    _step("600 ms pass", _advance(600)),
    _step("an hour passes", _advance(3_600_000)),
    _step("broker 2 leads t", lambda w: w.lead("t", leader=2)),
    _step("broker 1 leads t", lambda w: w.lead("t")),
    _step("broker 1 leads t with 2", lambda w: w.lead("t", isr=(1, 2))),
    _step("broker 1 leads t alone", lambda w: w.lead("t", isr=(1,), replicas=(1, 2, 3))),
    _step("t is deleted", lambda w: worlds.delete(w, "t")),
    _step("the metadata has no t", lambda w: w.parts.announce("t", leader=LEADER_DURING_DELETE)),
    _step("the metadata has t", lambda w: w.parts.announce("t")),
    _step("two replicas at least", lambda w: w.require_in_sync(2)),
    _step("the coordinator knows no such partition", _coordinator(ErrorCode.TRANSACTION_ABORTABLE)),
    _step("the coordinator is slow", _coordinator(ErrorCode.CONCURRENT_TRANSACTIONS)),
    _step("the coordinator knows all", _coordinator(ErrorCode.NONE)),
    _step("the coordinator answers", _coordinator_answers),
    _step("a transaction ends", lambda w: w.end_transaction(0)),
    _step("a has become b", _change_principal(0, "User:b")),
    _step("a is super", _change_principal(0, "User:super")),
    _step("a is a", _change_principal(0, "User:a")),
    _step("replication is limited", _replication_limit(1)),
    _step("replication is not limited", _replication_limit(None)),
    _step("sessions are forgotten", _drop_sessions),
    _step("a heartbeat", lambda w: w.clients[0].send(4, HeartbeatRequest(group_id="g"))),
    _step("the client hangs up", lambda w: w.clients[0].disconnect()),
    _step("the follower hangs up", lambda w: w.followers[0].disconnect()),
)  # fmt: skip


def grant(principal: str, name: str, *operations: Operation) -> Step:
    def apply(world: World) -> None:
        if world.has_authorizer:
            world.allow(principal, name, *operations)

    return Step(f"{principal} may {[each.name for each in operations]} {name}", apply)


grants = st.sampled_from(
    [
        grant(principal, name, *operations)
        for principal, name, operation in (
            ("User:a", "t", Operation.WRITE),
            ("User:b", "t", Operation.WRITE),
            ("User:a", "x", Operation.WRITE),
            ("User:follower", "kafka-cluster", Operation.CLUSTER_ACTION),
        )
        for operations in ((), (operation,))
    ]
)

steps = st.lists(
    st.one_of(produces, produces, produces, fetches, fetches, two_topics,
              st.sampled_from(EVENTS), grants),
    min_size=6, max_size=40,
)  # fmt: skip
