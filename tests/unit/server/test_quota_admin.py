"""Which stored quotas a filter lets through."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.quota_admin import ANY, DEFAULT, EXACT, Component, QuotaAdmin
from kafkapy.zk.store import ZkStore
from tests.support.znodes import run, server

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


@pytest.fixture
def admin() -> QuotaAdmin:
    store = ZkStore(server().connect())

    async def fill() -> None:
        await store.create_persistent_paths()
        await store.election.elect(1, 0)
        for (kind, name), configs in STORED.items():
            await store.configs.set(kind, name, configs)

    run(fill())
    return QuotaAdmin(store)


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
    found = run(admin.describe(components, strict))
    assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize(
    ("components", "code", "said"),
    [
        ([Component("", ANY, None)], ErrorCode.INVALID_REQUEST, "empty filter component"),
        ([Component("x", ANY, None)], ErrorCode.UNSUPPORTED_VERSION, "Custom entity type 'x'"),
        ([Component("ip", ANY, None)] * 2, ErrorCode.INVALID_REQUEST, "Duplicate ip filter"),
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
        run(admin.describe(components, True))
    assert refused.value.code is code
