"""Changing and describing SCRAM credentials: Kafka's checks, in Kafka's words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.security.sasl.scram import ScramCredential, ScramMechanism
from kafkapy.server.admin.quota_admin import QuotaAdmin, QuotaOp
from kafkapy.server.admin.scram_admin import Deletion, DescribedUser, ScramAdmin, Upsertion
from kafkapy.server.requests.turns import SliceScheduler
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.call_counts import counting_comparisons
from tests.harness.cores.znodes import run, server

SHA_256, SHA_512 = ScramMechanism


class Admin:
    """A cluster with a controller, and what may be asked of it."""

    def __init__(self, has_controller: bool = True) -> None:
        self.store = ZkStore(server().connect())
        self.change_lock = asyncio.Lock()
        self.admin = ScramAdmin(self.store, self.change_lock)
        run(self.store.create_persistent_paths())
        if has_controller:
            run(self.store.election.elect(1, 0))

    def alter(
        self, deletions: Sequence[Deletion] = (), upsertions: Sequence[Upsertion] = ()
    ) -> dict[str, tuple[ErrorCode, str] | None]:
        results = run(self.admin.alter([*deletions, *upsertions], SliceScheduler().pace()))
        return {u: None if e is None else (e.code, e.message) for u, e in results.items()}

    def describe(self, *users: str) -> list[DescribedUser]:
        return run(self.admin.describe(users, SliceScheduler().pace()))


def upsertion(user: str, mechanism: int = SHA_256, iterations: int = 4096) -> Upsertion:
    return Upsertion(user, mechanism, iterations, b"salt", b"salted")


def test_what_is_set_is_stored_told_of_and_described() -> None:
    cluster = Admin()
    both = [upsertion("a b", SHA_256, 8192), upsertion("a b", SHA_512)]
    assert cluster.alter([], both) == {"a b": None}
    stored = run(cluster.store.configs.get("users", "a%20b"))
    assert stored["SCRAM-SHA-256"] == ScramCredential.of(SHA_256, b"salt", b"salted", 8192).text()
    [sequence] = run(cluster.store.configs.changes())
    change = run(cluster.store.configs.change(sequence))
    assert change is not None
    assert tuple(change[0]) == ("users", "a%20b")
    expected = DescribedUser("a b", {SHA_256: 8192, SHA_512: 4096})
    assert cluster.describe("a b") == [expected]
    assert cluster.describe() == [expected]


def test_a_quota_that_is_set_at_the_same_time_takes_no_credential_back() -> None:
    """Both are stored in the user's node."""
    cluster = Admin()
    configs, get = cluster.store.configs, cluster.store.configs.get

    async def slow_get(entity_type: str, name: str) -> dict[str, str]:
        found = await get(entity_type, name)
        await asyncio.sleep(0)
        return found

    async def look_up(host: str) -> str | None:
        return None

    async def scenario() -> None:
        configs.get = slow_get  # type: ignore[method-assign]
        await asyncio.gather(
            QuotaAdmin(cluster.store, cluster.change_lock, look_up).alter(
                {"user": "alice"}, [QuotaOp("producer_byte_rate", 5.0)], validate_only=False
            ),
            cluster.admin.alter([upsertion("alice")], SliceScheduler().pace()),
        )

    asyncio.run(scenario())
    assert sorted(run(get("users", "alice"))) == ["SCRAM-SHA-256", "producer_byte_rate"]


def test_a_deletion_leaves_the_rest() -> None:
    cluster = Admin()
    run(cluster.store.configs.set("users", "alice", {"producer_byte_rate": "5"}))
    cluster.alter([], [upsertion("alice"), upsertion("alice", SHA_512)])
    assert cluster.alter([Deletion("alice", SHA_256)]) == {"alice": None}
    assert sorted(run(cluster.store.configs.get("users", "alice"))) == [
        "SCRAM-SHA-512",
        "producer_byte_rate",
    ]


@pytest.mark.parametrize(
    ("deletions", "upsertions", "error"),
    [
        (
            [],
            [upsertion("")],
            (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        ),
        (
            [],
            [upsertion("u", 3)],
            (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        ),
        (
            [Deletion("u", 0)],
            [],
            (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        ),
        (
            [],
            [upsertion("u", iterations=4095)],
            (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        ),
        (
            [],
            [upsertion("u", iterations=16385)],
            (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        ),
        (
            [Deletion("u", SHA_256)],
            [upsertion("u")],
            (
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            ),
        ),
        (
            [Deletion("u", SHA_256)],
            [upsertion("u", SHA_512)],
            (
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            ),
        ),
    ],
)
def test_refusals_change_nothing_of_that_user(
    deletions: list[Deletion], upsertions: list[Upsertion], error: tuple[ErrorCode, str]
) -> None:
    cluster = Admin()
    user = (*deletions, *upsertions)[0].user
    results = cluster.alter(deletions, [*upsertions, upsertion("other")])
    assert results == {user: error, "other": None}
    assert [found.user for found in cluster.describe()] == ["other"]


def test_without_a_controller_nothing_changes() -> None:
    [refusal] = Admin(has_controller=False).alter([], [upsertion("u")]).values()
    assert refusal is not None
    assert refusal[0] is ErrorCode.STALE_CONTROLLER_EPOCH


def test_describing_who_is_not_there() -> None:
    cluster = Admin()
    run(cluster.store.configs.set("users", "quotas", {"producer_byte_rate": "5"}))
    run(cluster.store.configs.set("users", "<default>", {"producer_byte_rate": "5"}))
    run(cluster.store.configs.set("users", "broken", {"SCRAM-SHA-256": "x"}))
    rows = {row.user: (row.error, row.message) for row in cluster.describe("quotas", "", "d", "d")}
    missing = "Attempt to describe a user credential that does not exist: quotas"
    twice = "Cannot describe SCRAM credentials for the same user twice in a single request: d"
    assert rows == {
        "quotas": (ErrorCode.RESOURCE_NOT_FOUND, missing),
        "": (ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty"),
        "d": (ErrorCode.DUPLICATE_RESOURCE, twice),
    }
    assert [row.user for row in cluster.describe()] == ["broken"]


def test_each_user_is_looked_up_however_many_are_named() -> None:
    """59 KB of deletions kept the event loop for a second: each was compared with all."""
    Name = counting_comparisons(str)
    names = [Name(f"user-{n}") for n in range(20)]
    Admin().alter([Deletion(name, SHA_256) for name in names])
    assert Name.times < 10 * len(names)


async def same_host(host: str) -> str:
    return host


def test_a_quota_set_at_another_broker_does_not_bring_back_an_old_password() -> None:
    cluster = Admin()
    assert cluster.alter([], [upsertion("u")]) == {"u": None}
    store = cluster.store
    get = store.configs.get_versioned
    elsewhere = QuotaAdmin(store, asyncio.Lock(), same_host)

    async def overtaken(kind: str, name: str) -> tuple[dict[str, str], int]:
        found = await get(kind, name)
        store.configs.get_versioned = get  # type: ignore[method-assign]
        await cluster.admin.alter([upsertion("u", SHA_256, 8192)], SliceScheduler().pace())
        return found

    store.configs.get_versioned = overtaken  # type: ignore[method-assign]
    run(elsewhere.alter({"user": "u"}, [QuotaOp("producer_byte_rate", 1.0)], False))
    assert cluster.describe("u") == [DescribedUser("u", {SHA_256: 8192})]
    assert run(store.configs.get("users", "u"))["producer_byte_rate"] == "1"
