"""Valid and invalid requests about client quotas, and requests that exhaust them.

They work with any broker of Kafka's protocol, so that answers can be compared.
"""

from __future__ import annotations

import math
import time
from typing import Any, Final

from kafkapy.client.cluster import Cluster
from kafkapy.protocol.messages import (
    alter_client_quotas,
    create_partitions,
    create_topics,
    delete_topics,
    describe_client_quotas,
    fetch,
    produce,
)
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.processes.wire import produce_request

# In an operation None removes; as a name it is the default entity.
Entity = tuple[tuple[str, str | None], ...]
Ops = tuple[tuple[str, float | None], ...]
RAW: Final = "raw"  # the client id of raw connections

ALTERATIONS: Final[tuple[tuple[Entity, Ops], ...]] = (
    ((("user", "a b"),), (("producer_byte_rate", 1024.0),)),
    (
        (("user", "a b"), ("client-id", "c/d*")),
        (("producer_byte_rate", 10.0), ("request_percentage", 12.5)),
    ),
    ((("user", None),), (("consumer_byte_rate", 5.0),)),
    ((("user", None), ("client-id", None)), (("controller_mutation_rate", 5.0),)),
    ((("client-id", None),), (("controller_mutation_rate", 0.5),)),
    ((("client-id", "c"),), (("producer_byte_rate", 1e10),)),
    ((("client-id", "c"),), (("producer_byte_rate", 1e19),)),
    ((("client-id", "c"),), (("request_percentage", 1e10), ("controller_mutation_rate", 1e-5))),
    ((("user", "<default>"),), (("producer_byte_rate", 3.0),)),
    ((("ip", "10.0.0.1"),), (("connection_creation_rate", 5.0),)),
    ((("ip", None),), (("connection_creation_rate", 1e6),)),
    ((("ip", "localhost"),), (("connection_creation_rate", 1e6),)),
    ((("ip", "nowhere.invalid"),), (("connection_creation_rate", 7.0),)),
    ((("ip", "1.2.3"),), (("connection_creation_rate", 7.0),)),
    ((("ip", "::1"),), (("connection_creation_rate", 7.0),)),
    ((("ip", "999.1.1.1"),), (("connection_creation_rate", 7.0),)),
    ((("ip", "10.0.0.1"),), (("connection_creation_rate", 1.5),)),
    ((("ip", "10.0.0.1"),), (("connection_creation_rate", -1.0),)),
    ((("ip", "10.0.0.1"),), (("connection_creation_rate", 1e10),)),
    ((("ip", "10.0.0.1"),), (("connection_creation_rate", 0.0),)),
    ((("ip", "10.0.0.1"),), (("producer_byte_rate", 1.0),)),
    ((("ip", "10.0.0.1"), ("user", "u")), (("connection_creation_rate", 1.0),)),
    ((("ip", "10.0.0.1"), ("client-id", "u")), (("connection_creation_rate", 1.0),)),
    ((), (("producer_byte_rate", 1.0),)),
    ((("user", ""),), (("producer_byte_rate", 1.0),)),
    ((("user", "x"), ("client-id", "")), (("producer_byte_rate", 1.0),)),
    ((("ip", ""),), (("connection_creation_rate", 1.0),)),
    ((("group", "x"),), (("producer_byte_rate", 1.0),)),
    ((("", "x"),), (("producer_byte_rate", 1.0),)),
    ((("user", "u"),), (("unknown", 1.0),)),
    ((("user", "u"),), (("unknown", None),)),
    ((("user", "u"),), (("SCRAM-SHA-256", 1.0),)),
    ((("user", "u"),), (("connection_creation_rate", 1.0),)),
    ((("client-id", "u"),), (("connection_creation_rate", 1.0),)),
    ((("user", "u"),), (("producer_byte_rate", 1.5),)),
    ((("user", "u"),), (("producer_byte_rate", 0.0),)),
    ((("user", "v"),), (("producer_byte_rate", -5.0),)),
    ((("user", "w1"),), (("producer_byte_rate", 1.0000001),)),
    ((("user", "w2"),), (("producer_byte_rate", 0.9999999),)),
    ((("user", "w3"),), (("producer_byte_rate", math.nan),)),
    ((("user", "w4"),), (("producer_byte_rate", math.inf),)),
    ((("user", "w5"),), (("request_percentage", -1.0), ("controller_mutation_rate", 0.0))),
    ((("user", "w6"),), ()),
    ((("user", "w7"),), (("producer_byte_rate", 1.0), ("unknown", 1.0))),
    ((("user", "w8"),), (("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0))),
    ((("user", "w9"), ("user", "w10")), (("producer_byte_rate", 1.0),)),
    ((("user", "r1"),), (("producer_byte_rate", 1.0), ("consumer_byte_rate", 2.0))),
    ((("user", "r1"),), (("producer_byte_rate", None),)),
    ((("user", "r2"),), (("producer_byte_rate", 1.0),)),
    ((("user", "r2"),), (("producer_byte_rate", None),)),
    ((("client-id", "r3"),), (("producer_byte_rate", None),)),
    ((("user", "r4"), ("client-id", "k")), (("producer_byte_rate", 1.0),)),
    ((("user", "r4"), ("client-id", "k")), (("producer_byte_rate", None),)),
    ((("user", "r5"), ("client-id", "k")), (("producer_byte_rate", 1.0),)),
    ((("user", "r5"),), (("producer_byte_rate", None),)),
    ((("ip", "10.0.0.9"),), (("connection_creation_rate", 1.0),)),
    ((("ip", "10.0.0.9"),), (("connection_creation_rate", None),)),
)

EXACT, DEFAULT, ANY = 0, 1, 2
FILTERS: Final[tuple[tuple[tuple[tuple[str, int, str | None], ...], bool], ...]] = (
    ((), False),
    ((), True),
    ((("user", EXACT, "a b"),), True),
    ((("user", EXACT, "a b"),), False),
    ((("user", EXACT, ""),), False),
    ((("user", DEFAULT, None),), False),
    ((("user", ANY, None),), True),
    ((("client-id", ANY, None),), False),
    ((("user", ANY, None), ("client-id", ANY, None)), True),
    ((("ip", ANY, None),), True),
    ((("ip", EXACT, "10.0.0.1"),), True),
    ((("ip", DEFAULT, None),), False),
    ((("user", ANY, None), ("ip", ANY, None)), False),
    ((("group", ANY, None),), False),
    ((("", ANY, None),), False),
    ((("user", ANY, None), ("user", ANY, None)), False),
    ((("client-id", ANY, None), ("client-id", ANY, None)), False),
)


def entry(entity: Entity, ops: Ops) -> alter_client_quotas.EntryData:
    """A row of AlterClientQuotas."""
    return alter_client_quotas.EntryData(
        entity=[
            alter_client_quotas.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        ],
        ops=[
            alter_client_quotas.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in ops
        ],
    )


def alter(
    cluster: Cluster, *changes: tuple[Entity, Ops], validate_only: bool = False
) -> list[tuple[Any, ...]]:
    """(error code, message, entity) of each row of the answer."""
    request = alter_client_quotas.AlterClientQuotasRequest(
        entries=[entry(*change) for change in changes], validate_only=validate_only
    )
    return [
        (
            row.error_code,
            row.error_message,
            tuple((part.entity_type, part.entity_name) for part in row.entity),
        )
        for row in cluster.request(request).entries
    ]


def set_quota(cluster: Cluster, entity: Entity, **quotas: float | None) -> None:
    """Change quotas of one entity, which must succeed."""
    [(error, message, _)] = alter(cluster, (entity, tuple(quotas.items())))
    assert error == 0, message


def describe(cluster: Cluster, components: Any, strict: bool) -> tuple[Any, ...]:
    """The error code, the message, and the described quotas, sorted."""
    request = describe_client_quotas.DescribeClientQuotasRequest(
        components=[
            describe_client_quotas.ComponentData(entity_type=kind, match_type=match, match=name)
            for kind, match, name in components
        ],
        strict=strict,
    )
    answer = cluster.request(request)
    found = None
    if answer.entries is not None:
        found = sorted(
            repr(
                (
                    sorted(repr((e.entity_type, e.entity_name)) for e in row.entity),
                    sorted((value.key, value.value) for value in row.values),
                )
            )
            for row in answer.entries
        )
    return answer.error_code, answer.error_message, found


def answers(servers: str) -> dict[str, Any]:
    """The answers to all ALTERATIONS in order, to validations, and to all FILTERS."""
    found: dict[str, Any] = {}
    with Cluster(servers) as cluster:
        for number, change in enumerate(ALTERATIONS):
            found[f"{number} {change}"] = alter(cluster, change)
        good = ((("user", "t"),), (("producer_byte_rate", 1.0),))
        more = ((("user", "t"),), (("consumer_byte_rate", 1.0),))
        bad = ((("user", "t2"),), (("unknown", 1.0),))
        found["validated"] = alter(cluster, good, bad, validate_only=True)
        found["after"] = describe(cluster, [("user", EXACT, "t")], True)
        found["twice"] = alter(cluster, good, more, bad)
        found["nothing"] = alter(cluster)
        for components, strict in FILTERS:
            found[f"{components} {strict}"] = describe(cluster, components, strict)
    return found


def produced(servers: str, topic: str, size: int, acks: int = 1, partition: int = 0) -> Any:
    """The answer to a record of `size` bytes, over a connection of its own."""
    # With the present time: retention would delete an older record in the middle of a test.
    records = build_batch([RecordData(None, b"v" * size, time.time_ns() // 1_000_000, [])])
    request = produce_request(topic, records, acks, partition)
    with RawConnection(servers) as connection:
        return connection.request(request, 9, produce.ProduceResponse)


def fetched(servers: str, topic: str, session_epoch: int = -1) -> Any:
    """The answer to a fetch from the start, over a connection of its own."""
    partition = fetch.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    request = fetch.FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=session_epoch,
        topics=[fetch.FetchTopic(topic=topic, partitions=[partition])],
    )
    with RawConnection(servers) as connection:
        return connection.request(request, 12, fetch.FetchResponse)


def created(servers: str, topic: str, partitions: int, version: int) -> tuple[int, Any, int]:
    """(error code, message, throttle time) of creating a topic."""
    row = create_topics.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    request = create_topics.CreateTopicsRequest(topics=[row], timeout_ms=10_000)
    with RawConnection(servers) as connection:
        answer = connection.request(request, version, create_topics.CreateTopicsResponse)
    [row] = answer.topics
    return row.error_code, row.error_message, answer.throttle_time_ms


def grown(servers: str, topic: str, count: int, version: int) -> tuple[int, Any, int]:
    """(error code, message, throttle time) of adding partitions."""
    row = create_partitions.CreatePartitionsTopic(name=topic, count=count, assignments=None)
    request = create_partitions.CreatePartitionsRequest(topics=[row], timeout_ms=10_000)
    with RawConnection(servers) as connection:
        answer = connection.request(request, version, create_partitions.CreatePartitionsResponse)
    [row] = answer.results
    return row.error_code, row.error_message, answer.throttle_time_ms


def deleted(servers: str, topic: str, version: int) -> tuple[int, Any, int]:
    """(error code, message, throttle time) of deleting a topic."""
    request = delete_topics.DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000)
    with RawConnection(servers) as connection:
        answer = connection.request(request, version, delete_topics.DeleteTopicsResponse)
    [row] = answer.responses
    return row.error_code, row.error_message, answer.throttle_time_ms
