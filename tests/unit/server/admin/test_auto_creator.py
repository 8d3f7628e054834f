"""Topics that are made because somebody asked: with the broker's defaults, and once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.admin.auto_creator import AutoCreator
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.requests.turns import CHANGE_UNITS, SLICE_UNITS, SliceScheduler
from kafkapy.zk.zookeeper import SessionExpired
from tests.harness.scripted import admins

Created = tuple[str, int, int, object, dict[str, str], bool]


class FakeTopicAdmin:
    """Writes down what it is asked to create; each creation takes a turn of the loop."""

    def __init__(self) -> None:
        self.created: list[Created] = []
        self.refusals: dict[str, Exception] = {}
        self.held: dict[str, asyncio.Event] = {}

    async def asked(self, count: int) -> None:
        """Return when so many creations have begun."""
        while len(self.created) < count:
            await asyncio.sleep(0)

    async def create_topic(self, *asked: Any) -> None:
        *fields, charge = asked
        self.created.append(tuple(fields))  # type: ignore[arg-type]
        charge(fields[1])
        await asyncio.sleep(0)
        if asked[0] in self.held:
            await self.held[asked[0]].wait()
        if asked[0] in self.refusals:
            raise self.refusals[asked[0]]


class Shop:
    """An auto creator over a fake topic admin; the topic `known` is there."""

    def __init__(self, **properties: str) -> None:
        given = {name.replace("_", "."): value for name, value in properties.items()}
        metadata = admins.metadata(("known",))
        self._waiter = MetadataWaiter(metadata)
        self.admin = FakeTopicAdmin()
        self.creator = AutoCreator(
            KafkaConfig(given),
            self.admin,  # type: ignore[arg-type]
            metadata,
            self._waiter,
            SliceScheduler(),
        )

    @property
    def waits_for_leaders(self) -> bool:
        return bool(self._waiter._waiters)

    def create(self, *names: str) -> list[Created]:
        asyncio.run(self.creator.create(list(names), 0))
        return self.admin.created


def test_a_topic_gets_the_brokers_defaults() -> None:
    shop = Shop(num_partitions="3", default_replication_factor="2")
    assert shop.create("t") == [("t", 3, 2, None, {}, False)]


def test_who_has_a_topic_made_is_charged_for_it() -> None:
    charged: list[int] = []
    creator = Shop(num_partitions="3").creator
    asyncio.run(creator.create(["t", "known", "u"], 0, charged.append))
    assert charged == [3, 3]


def test_names_that_are_refused_at_once_leave_the_loop_to_others() -> None:
    """40,000 names in a Metadata of 1 MB kept everybody waiting for 0.7 s."""
    shop = Shop()

    def refuse(partitions: int) -> None:
        raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    async def served_meanwhile() -> int:
        names = [f"t{number}" for number in range(4 * SLICE_UNITS // CHANGE_UNITS)]
        creation = asyncio.ensure_future(shop.creator.create(names, 0, refuse))
        turns = 0
        while not creation.done():
            await asyncio.sleep(0)
            turns += 1
        assert len(await creation) == len(names)
        return turns

    assert asyncio.run(served_meanwhile()) > 4


def test_creation_stops_when_it_is_no_longer_wanted() -> None:
    """A request of 1 MB names 40,000; its client need not wait for them."""
    shop = Shop()

    def wanted() -> bool:
        return len(shop.admin.created) < 2

    create = shop.creator.create(["a", "b", "c", "d"], 10**9, is_wanted=wanted)
    assert asyncio.run(asyncio.wait_for(create, 10)) == {}
    assert [row[0] for row in shop.admin.created] == ["a", "b"]
    assert shop.create("c")[-1][0] == "c"


def test_a_refused_creation_takes_nothing_from_the_next_one_of_its_name() -> None:
    """The client of the next one got an error that is no answer of Kafka's."""
    shop = Shop()
    shop.admin.refusals["t"] = ApiError(ErrorCode.INVALID_REPLICATION_FACTOR)

    async def both() -> list[dict[str, ErrorCode]]:
        shop.admin.held = {"u": asyncio.Event()}
        first = asyncio.ensure_future(shop.creator.create(["t", "u"], 0))
        await shop.admin.asked(2)
        shop.admin.held["t"] = asyncio.Event()
        second = asyncio.ensure_future(shop.creator.create(["t"], 0))
        await shop.admin.asked(3)
        shop.admin.held["u"].set()
        answers = [await first]
        shop.admin.held["t"].set()
        return [*answers, await second]

    refused = {"t": ErrorCode.INVALID_REPLICATION_FACTOR}
    assert asyncio.run(both()) == [refused, refused]


def test_the_offsets_topic_is_compacted_and_sized_by_its_own_configs() -> None:
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
        "compression.type": "producer",
    }
    offsets = "__consumer_offsets"
    assert Shop().create(offsets) == [(offsets, 50, 1, None, configs, False)]
    shop = Shop(
        offsets_topic_num_partitions="5",
        offsets_topic_replication_factor="3",
        offsets_topic_segment_bytes="1000",
    )
    configs["segment.bytes"] = "1000"
    assert shop.create(offsets) == [(offsets, 5, 3, None, configs, False)]


def test_the_transaction_log_is_never_made_as_an_ordinary_topic() -> None:
    """A consumer that only looks at it must not leave one uncompacted partition behind."""
    shop = Shop(zookeeper_connect="localhost:2181")
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": "2",
    }
    name = "__transaction_state"
    assert shop.create(name) == [(name, 50, 3, None, configs, False)]


def test_a_topic_that_is_there_is_not_created_again() -> None:
    assert [row[0] for row in Shop().create("known", "t")] == ["t"]


def test_two_who_ask_at_once_create_one_topic() -> None:
    shop = Shop()

    async def both() -> None:
        await asyncio.gather(*(shop.creator.create(["t"], 0) for _ in range(2)))

    asyncio.run(both())
    assert len(shop.admin.created) == 1
    assert len(shop.create("t")) == 2


def test_a_refusal_is_passed_on_and_nobody_waits_for_the_topic() -> None:
    shop = Shop()
    shop.admin.refusals = {
        "bad": ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "too many"),
        "going": ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, "marked for deletion"),
    }
    refused = {
        "bad": ErrorCode.INVALID_REPLICATION_FACTOR,
        "going": ErrorCode.LEADER_NOT_AVAILABLE,
    }

    async def in_time() -> None:
        creator, forever = shop.creator, 10**9
        alone = creator.create(["bad", "going"], forever)
        assert await asyncio.wait_for(alone, 10) == refused
        both = asyncio.gather(*(creator.create(["bad"], forever) for _ in range(2)))
        shared = {"bad": ErrorCode.INVALID_REPLICATION_FACTOR}
        assert await asyncio.wait_for(both, 10) == [shared, shared]

    asyncio.run(in_time())
    assert len(shop.admin.created) == 3, "two that ask at once share one refusal"


def test_a_lost_session_is_logged_and_the_client_told_to_ask_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The creation of `__share_group_state` wrote a traceback."""
    shop = Shop()
    shop.admin.refusals = {"t": SessionExpired("/brokers/topics/t")}
    asked = shop.creator.create(["t"], 0)
    assert asyncio.run(asked) == {"t": ErrorCode.LEADER_NOT_AVAILABLE}
    assert "Auto topic creation of t failed: SessionExpired" in caplog.text


def test_a_creation_is_in_flight_until_the_topic_is_known() -> None:
    """Else those who ask in between are refused, for the topic exists."""
    shop = Shop()

    async def one_after_the_other() -> None:
        first = asyncio.ensure_future(shop.creator.create(["t"], 10**9))
        while not shop.waits_for_leaders:
            await asyncio.sleep(0)
        shop.admin.refusals = {"t": ApiError(ErrorCode.TOPIC_ALREADY_EXISTS)}
        second = asyncio.ensure_future(shop.creator.create(["t"], 0))
        assert await second == {}
        first.cancel()
        await asyncio.wait([first])
        assert await shop.creator.create(["t"], 0) == {"t": ErrorCode.LEADER_NOT_AVAILABLE}

    asyncio.run(one_after_the_other())


def test_a_refusal_is_logged_and_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shop = Shop()
    shop.admin.refusals = {
        "bad": ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "too many"),
        "raced": ApiError(ErrorCode.TOPIC_ALREADY_EXISTS),
    }
    assert [row[0] for row in shop.create("bad", "raced", "good")] == ["bad", "raced", "good"]
    assert [r.getMessage() for r in caplog.records] == [
        "Auto topic creation of bad failed: too many"
    ]
    shop.create("bad")
    assert len(shop.admin.created) == 4
