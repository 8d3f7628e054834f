"""Pushes of clients: throttling, subscription ids, last pushes, and bounded memory."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.metadata import telemetry
from kafkapy.metadata.client_metrics import ClientInformation
from kafkapy.metadata.otlp import LABEL_CHARS_MAX
from kafkapy.metadata.telemetry import ClientTelemetry, Instance, Push
from tests.harness.cores.ports import SeededRandom

CLIENT = ClientInformation("", "billing", "librdkafka", "2.16", "10.0.0.1", "5000")
INTERVAL_MS = 1_000


class World:
    """One client of a broker with one subscription."""

    def __init__(self) -> None:
        self.telemetry = ClientTelemetry(100, SeededRandom(1))
        self.telemetry.subscribe("m", {"metrics": "a", "interval.ms": str(INTERVAL_MS)})
        self.id, self.instance = self.telemetry.get(0, ZERO_UUID, CLIENT)

    def get(self, now_ms: int) -> Instance:
        return self.telemetry.get(now_ms, self.id, CLIENT)[1]

    def push(
        self,
        now_ms: int,
        subscription_id: int | None = None,
        is_last: bool = False,
        codec: int = 4,
        size_bytes: int = 100,
    ) -> None:
        if subscription_id is None:
            subscription_id = self.instance.subscription_id
        push = Push(subscription_id, is_last, codec, size_bytes)
        self.telemetry.push(now_ms, self.id, CLIENT, push)


@pytest.fixture
def world() -> World:
    return World()


def refusal(work: object) -> ErrorCode:
    with pytest.raises(ApiError) as error:
        work()  # type: ignore[operator]
    return error.value.code


def test_a_new_client_gets_an_id_and_its_subscriptions(world: World) -> None:
    assert not world.id.is_zero
    assert world.instance.requested_metrics == (("a",), INTERVAL_MS)
    assert world.instance.client.client_instance_id == str(world.id)


def test_long_names_of_a_client_select_and_are_kept_in_short(world: World) -> None:
    """A client chooses them, up to a request's size each, and its instance outlives it."""
    long = "a" * 10_000
    world.telemetry.subscribe("long", {"metrics": "b", "match": "client_id=a{1000}.*z"})
    world.telemetry.subscribe("longer", {"metrics": "c", "match": "client_software_name=a*b"})
    client = CLIENT._replace(client_id=f"{long}z", client_software_name=f"{long}b")
    _, instance = world.telemetry.get(0, ZERO_UUID, client)
    assert instance.requested_metrics.metrics == ("a", "b", "c")
    assert max(map(len, instance.client)) == LABEL_CHARS_MAX


def test_the_first_push_may_be_early_and_the_others_are_not(world: World) -> None:
    world.push(INTERVAL_MS // 2)
    assert refusal(lambda: world.push(INTERVAL_MS)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert world.telemetry.throttled == 1
    world.push(INTERVAL_MS // 2 + INTERVAL_MS)


def test_subscriptions_are_not_requested_more_often_than_pushes(world: World) -> None:
    assert refusal(lambda: world.get(INTERVAL_MS - 1)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    world.get(INTERVAL_MS)
    world.push(INTERVAL_MS + 10)
    assert refusal(lambda: world.get(2 * INTERVAL_MS)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_changed_subscriptions_are_told_by_their_id(world: World) -> None:
    old = world.instance.subscription_id
    world.push(10)
    world.telemetry.subscribe("n", {"metrics": "b"})
    assert refusal(lambda: world.push(20, old)) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert world.telemetry.unknown_subscriptions == 1
    new = world.get(30)
    assert new.requested_metrics == (("a", "b"), INTERVAL_MS)
    assert new.subscription_id != old
    world.push(40, new.subscription_id)
    world.telemetry.subscribe("n", {})
    assert world.get(50).subscription_id == old
    world.telemetry.subscribe("unknown", {})
    assert refusal(lambda: world.get(60)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize(
    ("codec", "size_bytes", "code", "may_get"),
    [
        (5, 1, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, True),
        (-1, 1, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, True),
        (0, 101, ErrorCode.TELEMETRY_TOO_LARGE, False),
    ],
)
def test_what_cannot_be_taken(
    world: World, codec: int, size_bytes: int, code: ErrorCode, may_get: bool
) -> None:
    assert refusal(lambda: world.push(10, codec=codec, size_bytes=size_bytes)) is code
    if may_get:
        world.get(20)
    else:
        assert refusal(lambda: world.get(20)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_last_push_may_be_early_and_nothing_follows_it(world: World) -> None:
    world.push(10)
    world.push(20, is_last=True)
    assert refusal(lambda: world.push(5 * INTERVAL_MS)) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("reserved", [ZERO_UUID, Uuid(bytes(15) + b"\1")])
def test_a_push_has_an_id(world: World, reserved: Uuid) -> None:
    world.id = reserved
    assert refusal(lambda: world.push(10)) is ErrorCode.INVALID_REQUEST


def test_the_same_subscriptions_have_the_same_id_on_each_broker(world: World) -> None:
    other = ClientTelemetry(1, SeededRandom(9))
    other.subscribe("x", {"metrics": "a", "interval.ms": str(INTERVAL_MS)})
    _, instance = other.get(0, world.id, CLIENT)
    assert instance.subscription_id == world.instance.subscription_id
    assert -(1 << 31) <= instance.subscription_id < 1 << 31


def test_silent_clients_are_forgotten(world: World) -> None:
    assert not world.telemetry.expire(telemetry.EXPIRY_MS_MIN - 1)
    assert world.telemetry.expire(telemetry.EXPIRY_MS_MIN + 10_000)
    assert not world.telemetry.instances
    assert not world.telemetry.expire(10**9)


def test_the_clients_used_last_are_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "INSTANCES_MAX", 2)
    second, _ = world.telemetry.get(1, ZERO_UUID, CLIENT)
    world.push(2)
    third, _ = world.telemetry.get(3, ZERO_UUID, CLIENT)
    assert set(world.telemetry.instances) == {world.id, third}
    assert second not in world.telemetry.instances
    assert world.telemetry.expire(4), "it has been forgotten"
