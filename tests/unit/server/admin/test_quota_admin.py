"""Which stored quotas a filter lets through, and what an alteration makes of the stored ones: as
Apache Kafka 3.9.1 answered the same requests."""

from __future__ import annotations

import asyncio
import math

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.admin.quota_admin import (
    ANY,
    DEFAULT,
    EXACT,
    Component,
    Entity,
    QuotaAdmin,
    QuotaOp,
)
from kafkapy.server.config.addresses import numeric_address
from kafkapy.server.requests.turns import SliceScheduler
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.znodes import run, server
from tests.harness.scripted import admins

STORED = {
    ("users", "a%20b"): {"producer_byte_rate": "1", "SCRAM-SHA-256": "secret"},
    ("users", "<default>"): {"consumer_byte_rate": "2.5"},
    ("users", "a%20b/clients/c"): {"request_percentage": "3"},
    ("users", "only-scram"): {"SCRAM-SHA-256": "secret"},
    ("clients", "c"): {"producer_byte_rate": "4", "broken": "x", "consumer_byte_rate": "x"},
    ("ips", "10.0.0.1"): {"connection_creation_rate": "5"},
}
USER = ({"user": "a b"}, {"producer_byte_rate": 1.0})
DEFAULT_USER = ({"user": None}, {"consumer_byte_rate": 2.5})
BOTH = ({"user": "a b", "client-id": "c"}, {"request_percentage": 3.0})
CLIENT = ({"client-id": "c"}, {"producer_byte_rate": 4.0})
IP = ({"ip": "10.0.0.1"}, {"connection_creation_rate": 5.0})


_LATER_MS = 1 << 60


async def look_up(host: str) -> str | None:
    return host if host in ("localhost", "10.0.0.1", "10.0.0.2") else None


@pytest.fixture
def store() -> ZkStore:
    return ZkStore(server().connect())


@pytest.fixture
def admin(store: ZkStore) -> QuotaAdmin:

    async def fill() -> None:
        await store.create_persistent_paths()
        await store.election.elect(1, 0)
        for (kind, name), configs in STORED.items():
            await store.configs.set(kind, name, configs)
        await store.configs.purge_changes(await store.configs.changes(), _LATER_MS)

    run(fill())
    return QuotaAdmin(store, asyncio.Lock(), look_up)


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ([], False, [USER, DEFAULT_USER, BOTH, CLIENT, IP]),
        ([], True, []),
        ([Component("user", EXACT, "a b")], True, [USER]),
        ([Component("user", EXACT, "a b")], False, [USER, BOTH]),
        ([Component("user", DEFAULT, None)], False, [DEFAULT_USER]),
        ([Component("user", ANY, None)], True, [USER, DEFAULT_USER]),
        ([Component("user", ANY, None), Component("client-id", ANY, None)], True, [BOTH]),
        ([Component("client-id", EXACT, "c")], True, [CLIENT]),
        ([Component("ip", ANY, None)], True, [IP]),
        ([Component("user", EXACT, "nobody")], False, []),
    ],
)
def test_filters(
    admin: QuotaAdmin, components: list[Component], strict: bool, expected: list[object]
) -> None:
    found = run(admin.describe(components, strict, SliceScheduler().pace()))
    assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize(
    ("components", "code", "said"),
    [
        ([Component("", ANY, None)], ErrorCode.INVALID_REQUEST, "empty filter component"),
        ([Component("x", ANY, None)], ErrorCode.UNSUPPORTED_VERSION, "Custom entity type 'x'"),
        ([Component("ip", ANY, None)] * 2, ErrorCode.INVALID_REQUEST, "Duplicate ip filter"),
        (
            [Component("client-id", ANY, None)] * 2,
            ErrorCode.INVALID_REQUEST,
            "Duplicate client filter component",
        ),
        ([Component("ip", 3, None)], ErrorCode.INVALID_REQUEST, "Unexpected match type: 3"),
        ([Component("ip", EXACT, None)], ErrorCode.INVALID_REQUEST, "the name is null"),
        (
            [Component("ip", ANY, None), Component("user", ANY, None)],
            ErrorCode.INVALID_REQUEST,
            "IP filter component should not be used with user",
        ),
    ],
)
def test_filters_that_make_no_sense(
    admin: QuotaAdmin, components: list[Component], code: ErrorCode, said: str
) -> None:
    with pytest.raises(ApiError, match=said) as refused:
        run(admin.describe(components, True, SliceScheduler().pace()))
    assert refused.value.code is code


@pytest.mark.parametrize(
    ("entity", "kind", "name"),
    [
        ({"user": "a/b *"}, "users", "a%2Fb%20%2A"),
        ({"user": None}, "users", "<default>"),
        ({"user": "<default>"}, "users", "%3Cdefault%3E"),
        ({"client-id": "c d"}, "clients", "c%20d"),
        ({"client-id": None}, "clients", "<default>"),
        ({"user": "u", "client-id": "c"}, "users", "u/clients/c"),
        ({"client-id": None, "user": None}, "users", "<default>/clients/<default>"),
    ],
)
def test_where_quotas_are_stored(
    admin: QuotaAdmin, store: ZkStore, entity: Entity, kind: str, name: str
) -> None:
    run(store.configs.set(kind, name, {"request_percentage": "7"}))
    run(admin.alter(entity, [QuotaOp("producer_byte_rate", 10.0)], False))
    stored = {"request_percentage": "7", "producer_byte_rate": "10"}
    assert run(store.configs.get(kind, name)) == stored
    _, sequence = run(store.configs.changes())
    change = run(store.configs.change(sequence))
    assert change is not None
    assert tuple(change[0]) == (kind, name)


@pytest.mark.parametrize(
    ("address", "name"), [("10.0.0.2", "10.0.0.2"), ("localhost", "localhost"), (None, "<default>")]
)
def test_rates_of_addresses(
    admin: QuotaAdmin, store: ZkStore, address: str | None, name: str
) -> None:
    run(admin.alter({"ip": address}, [QuotaOp("connection_creation_rate", 3.0)], False))
    assert run(store.configs.get("ips", name)) == {"connection_creation_rate": "3"}


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("producer_byte_rate", 1e10, "10000000000"),
        ("producer_byte_rate", 1.0000001, "1"),
        ("consumer_byte_rate", 0.9999999, "1"),
        ("consumer_byte_rate", 0.0, "0"),
        ("producer_byte_rate", math.nan, "0"),
        ("request_percentage", 12.5, "12.5"),
        ("request_percentage", 1e10, "1.0E10"),
        ("controller_mutation_rate", 1e-5, "1.0E-5"),
        ("request_percentage", -1.0, "-1.0"),
        ("request_percentage", math.nan, "NaN"),
    ],
)
def test_how_a_quota_is_written(
    admin: QuotaAdmin, store: ZkStore, key: str, value: float, text: str
) -> None:
    run(admin.alter({"user": "u"}, [QuotaOp(key, value)], False))
    assert run(store.configs.get("users", "u")) == {key: text}


def test_the_last_quota_takes_its_node_with_it(admin: QuotaAdmin, store: ZkStore) -> None:
    both: Entity = {"user": "new", "client-id": "c"}
    run(admin.alter(both, [QuotaOp("producer_byte_rate", 1.0)], False))
    run(admin.alter(both, [QuotaOp("producer_byte_rate", None), QuotaOp("unknown", None)], False))
    assert run(store.zookeeper.exists("/config/users/new")) is None
    run(admin.alter({"user": "a b"}, [QuotaOp("producer_byte_rate", None)], False))
    assert run(store.configs.get("users", "a%20b")) == {"SCRAM-SHA-256": "secret"}
    assert len(run(store.configs.changes())) == 3


LONG = "Configuration producer_byte_rate must be a LONG value"
INT = "Configuration connection_creation_rate must be a INT value"
COMBINED = (
    "Invalid quota entity combination, IP entity should not be used with user/client ID entity."
)


@pytest.mark.parametrize(
    ("entity", "key", "value", "said"),
    [
        ({}, "producer_byte_rate", 1.0, "Invalid empty client quota entity"),
        ({"user": ""}, "producer_byte_rate", 1.0, "Empty user not supported"),
        ({"user": "u", "client-id": ""}, "x", 1.0, "Empty client-id not supported"),
        ({"ip": ""}, "connection_creation_rate", 1.0, "Empty ip not supported"),
        ({"group": "g"}, "x", 1.0, "Unhandled client quota entity type: group"),
        ({"": None}, "x", 1.0, "Unhandled client quota entity type: "),
        ({"ip": "10.0.0.1", "user": "u"}, "x", 1.0, COMBINED),
        ({"ip": None, "client-id": None}, "x", 1.0, COMBINED),
        ({"ip": "nowhere"}, "x", 1.0, "nowhere is not a valid IP or resolvable host."),
        ({"ip": "::1"}, "x", 1.0, "%3A%3A1 is not a valid IP or resolvable host."),
        ({"user": "a b"}, "x", 1.0, "Invalid configuration key x"),
        ({"client-id": "c"}, "SCRAM-SHA-256", 1.0, "Invalid configuration key SCRAM-SHA-256"),
        (
            {"user": "a b"},
            "connection_creation_rate",
            1.0,
            "Invalid configuration key connection_creation_rate",
        ),
        (
            {"ip": "10.0.0.1"},
            "producer_byte_rate",
            1,
            "Invalid configuration key producer_byte_rate",
        ),
        ({"user": "a b"}, "producer_byte_rate", 1.5, LONG),
        ({"user": "a b"}, "producer_byte_rate", -5.0, LONG),
        ({"user": "a b"}, "producer_byte_rate", 1e19, LONG),
        ({"user": "a b"}, "producer_byte_rate", math.inf, LONG),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", -1.0, INT),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 1.5, INT),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 1e10, INT),
    ],
)
def test_alterations_that_are_refused_change_nothing(
    admin: QuotaAdmin, store: ZkStore, entity: Entity, key: str, value: float, said: str
) -> None:
    with pytest.raises(ApiError) as refused:
        run(admin.alter(entity, [QuotaOp("producer_byte_rate", None), QuotaOp(key, value)], False))
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, said)
    assert run(store.configs.changes()) == []
    for (kind, name), configs in STORED.items():
        assert run(store.configs.get(kind, name)) == configs


def test_a_credential_is_no_quota(admin: QuotaAdmin) -> None:
    with pytest.raises(ApiError) as refused:
        run(admin.alter({"user": "u"}, [QuotaOp("SCRAM-SHA-256", 1.0)], False))
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_what_is_only_validated_is_not_written(admin: QuotaAdmin, store: ZkStore) -> None:
    run(admin.alter({"user": "u"}, [QuotaOp("producer_byte_rate", 1.0)], True))
    assert run(store.configs.get("users", "u")) == {}
    assert run(store.configs.changes()) == []
    with pytest.raises(ApiError, match="Invalid configuration key x"):
        run(admin.alter({"user": "u"}, [QuotaOp("x", 1.0)], True))


def test_without_a_controller_no_quota_changes() -> None:
    store = ZkStore(server().connect())
    run(store.create_persistent_paths())
    with pytest.raises(ApiError) as refused:
        run(QuotaAdmin(store, asyncio.Lock(), look_up).alter({"user": "u"}, [], False))
    assert refused.value.code is ErrorCode.STALE_CONTROLLER_EPOCH


def test_a_lone_broker_takes_addresses_that_kafkas_could_not_read() -> None:
    store = admins.store()

    async def numbers(host: str) -> str | None:
        return numeric_address(host)

    entity = {"ip": "::1"}
    ops = [QuotaOp("connection_creation_rate", 5.0)]
    with pytest.raises(ApiError, match="%3A%3A1 is not a valid IP or resolvable host"):
        run(QuotaAdmin(store, asyncio.Lock(), numbers).alter(entity, ops, False))
    run(QuotaAdmin(store, asyncio.Lock(), numbers, has_only_kafkapy=True).alter(entity, ops, False))
    assert run(store.configs.get("ips", "%3A%3A1")) == {"connection_creation_rate": "5"}
    with pytest.raises(ApiError, match="nobody is not a valid IP or resolvable host"):
        run(
            QuotaAdmin(store, asyncio.Lock(), numbers, has_only_kafkapy=True).alter(
                {"ip": "nobody"}, ops, False
            )
        )
