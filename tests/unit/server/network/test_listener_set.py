"""Which listeners may come and go while the others are served."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from kafkapy.common.cluster_state import Endpoint
from kafkapy.common.errors import ConfigError
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network.acceptor import Acceptor
from kafkapy.server.network.listener_set import ListenerSet

A, B, C = "A://127.0.0.1:1", "B://127.0.0.1:2", "C://127.0.0.1:3"
GIVEN = {
    "listeners": f"{A},{B}",
    "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,C:SSL",
    "inter.broker.listener.name": "A",
}
SECURED: Any = object()


class Door:
    """Stands in for an acceptor: `changes` are the names and what was secured anew."""

    def __init__(self) -> None:
        self.changes: list[tuple[list[str], Mapping[str, Any]]] = []
        self.told: list[tuple[Endpoint, ...]] = []
        self.names: list[str] = []
        self.ready_before: list[int] = []

    async def prepare(self) -> None:
        self.ready_before.append(len(self.changes))

    def change(self, config: KafkaConfig, added: Mapping[str, Any]) -> None:
        self.names = [each.name for each in config.listeners]
        self.changes.append((self.names, added))

    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(Endpoint(name, "h", 1, "PLAINTEXT") for name in self.names)

    async def hear(self, config: KafkaConfig, endpoints: tuple[Endpoint, ...]) -> None:
        self.told.append(endpoints)


def listeners(door: Door) -> ListenerSet:
    made = ListenerSet(
        KafkaConfig(GIVEN), cast(Acceptor, door), lambda config, listener: SECURED, door.prepare
    )
    made.on_change = door.hear
    return made


def test_what_says_the_same_plans_nothing() -> None:
    assert listeners(Door()).plan({**GIVEN, "message.max.bytes": "9"}) is None


def test_who_goes_stays_and_comes() -> None:
    door = Door()
    made = listeners(door)
    plan = made.plan({**GIVEN, "listeners": f"{A},{C}"})
    assert plan is not None
    assert (plan.names, plan.kept, plan.security) == (("A", "C"), {"A"}, {"C": SECURED})
    assert door.changes == []
    asyncio.run(plan.change())
    assert door.changes == [(["A", "C"], {"C": SECURED})]
    assert door.told == [door.endpoints()]
    assert door.ready_before == [0]  # keys, before anybody can log in
    assert made.plan({**GIVEN, "listeners": f"{A},{C}"}) is None
    back = made.plan(GIVEN)
    assert back is not None
    assert (back.names, back.kept, back.security) == (("A", "B"), {"A"}, {})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"listeners": B, "inter.broker.listener.name": "B"}, "listener A cannot be taken away"),
        ({"listeners": B}, "must be one of the advertised"),
        ({"listeners": "A:1"}, "is not a listener"),
        ({"advertised.listeners": C}, "names C, which is not among listeners"),
        (
            {"listener.security.protocol.map": "A:PLAINTEXT,B:SSL"},
            "the protocol of listener B cannot change",
        ),
    ],
)
def test_what_cannot_be_is_told_and_changes_nothing(change: dict[str, str], why: str) -> None:
    door = Door()
    made = listeners(door)
    with pytest.raises(ConfigError, match=why):
        made.plan({**GIVEN, **change})
    assert door.changes == []
    assert made.plan(GIVEN) is None


def test_a_new_listener_that_cannot_be_secured_is_refused() -> None:
    def secure(config: KafkaConfig, listener: object) -> Any:
        raise ConfigError("no certificate")

    made = ListenerSet(KafkaConfig(GIVEN), cast(Acceptor, Door()), secure, Door().prepare)
    with pytest.raises(ConfigError, match="no certificate"):
        made.plan({**GIVEN, "listeners": f"{A},{C}"})


def test_a_plan_counts_on_the_changes_that_wait() -> None:
    """A listener that goes and comes back while an earlier change waits is new: it is secured."""
    keys_came = asyncio.Event()
    wanted = (f"{A},{C}", A, f"{A},{B},{C}")

    class Waiting(Door):
        async def prepare(self) -> None:
            await keys_came.wait()

    async def run() -> Door:
        door = Waiting()
        made = listeners(door)
        changes = []
        for text in wanted:
            plan = made.plan({**GIVEN, "listeners": text})
            assert plan is not None
            changes.append(asyncio.ensure_future(plan.change()))
            await asyncio.sleep(0)
        keys_came.set()
        await asyncio.gather(*changes)
        return door

    assert asyncio.run(run()).changes == [
        (["A", "C"], {"C": SECURED}),
        (["A"], {}),
        (["A", "B", "C"], {"C": SECURED}),
    ]
