"""Topic and broker configs altered: merges, checks, the znode and its notification."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.metadata.dynamic_passwords import DynamicPasswords
from kafkapy.metadata.topic_config import BrokerConfigLayers
from kafkapy.security.password_encoder import SECRET, PasswordEncoder
from kafkapy.server.admin.config_admin import AlterOp, ConfigAdmin
from kafkapy.server.config.kafka_config import BROKER_CONFIGS
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import ConfigChange
from tests.harness.cores.call_counts import counting_comparisons
from tests.harness.cores.ports import SeededRandom
from tests.harness.cores.znodes import run
from tests.harness.scripted import admins

SET, DELETE, APPEND, SUBTRACT = AlterOp
Check = Callable[[Mapping[str, str]], None]
WHERE = "Invalid config value for resource ConfigResource"


def nothing_more(_: Mapping[str, str]) -> None:
    """No further check of this broker's own configs."""


def admin(store: ZkStore, check_own: Check = nothing_more, secret: str = "") -> ConfigAdmin:
    cache = admins.metadata(("t",))
    current = {"num.io.threads": 8}
    passwords = DynamicPasswords({SECRET: secret} if secret else {}, SeededRandom(1).bytes)
    layers = BrokerConfigLayers(BROKER_CONFIGS)
    lock = asyncio.Lock()
    return ConfigAdmin(store, lock, cache, lambda: layers, 1, lambda: current, check_own, passwords)


def change(store: ZkStore, *ops: tuple[str, int, str | None], name: str = "t") -> dict[str, str]:
    run(admin(store).change(ResourceType.TOPIC, name, ops))
    return run(store.configs.get("topics", name))


def refused(coroutine: Any) -> tuple[ErrorCode, str]:
    with pytest.raises(ApiError) as error:
        run(coroutine)
    return error.value.code, error.value.message


def notified(store: ZkStore) -> list[ConfigChange]:
    changes = [run(store.configs.change(n)) for n in run(store.configs.changes())]
    return [found[0] for found in changes if found is not None]


def test_replacing_drops_what_is_not_named() -> None:
    store = admins.store()
    for configs in ({"retention.ms": "1", "segment.bytes": "99"}, {"segment.bytes": "98"}):
        run(admin(store).replace(ResourceType.TOPIC, "t", configs))
    assert run(store.configs.get("topics", "t")) == {"segment.bytes": "98"}
    assert notified(store) == [ConfigChange("topics", "t")] * 2


def test_changes_at_the_same_time_keep_each_other() -> None:
    store = admins.store()
    get = store.configs.get_versioned

    async def slow_get(entity_type: str, name: str) -> tuple[dict[str, str], int]:
        found = await get(entity_type, name)
        await asyncio.sleep(0)
        return found

    async def scenario(brokers: Sequence[ConfigAdmin]) -> None:
        changes = ("retention.ms", SET, "1"), ("segment.bytes", SET, "99")
        pairs = zip(brokers, changes, strict=True)
        await asyncio.gather(*(one.change(ResourceType.TOPIC, "t", [op]) for one, op in pairs))

    store.configs.get_versioned = slow_get  # type: ignore[method-assign]
    one = admin(store)
    for brokers in ([one, one], [one, admin(store)]):
        asyncio.run(scenario(brokers))
        assert run(get("topics", "t"))[0] == {"retention.ms": "1", "segment.bytes": "99"}
        run(store.configs.set("topics", "t", {}))


def test_incremental_changes_keep_the_rest() -> None:
    store = admins.store()
    assert change(store, ("retention.ms", SET, "1"), ("segment.bytes", SET, "99")) == {
        "retention.ms": "1",
        "segment.bytes": "99",
    }
    assert change(store, ("retention.ms", DELETE, None), ("flush.ms", DELETE, None)) == {
        "segment.bytes": "99"
    }


def test_lists_grow_and_shrink_from_the_default() -> None:
    store = admins.store()
    name = "cleanup.policy"
    assert change(store, (name, APPEND, "compact")) == {name: "delete,compact"}
    assert change(store, (name, APPEND, "compact")) == {name: "delete,compact"}
    assert change(store, (name, SUBTRACT, "delete")) == {name: "compact"}
    throttled = "leader.replication.throttled.replicas"
    assert change(store, (throttled, APPEND, "0:1,1:2"))[throttled] == "0:1,1:2"


def test_validate_only_writes_nothing() -> None:
    store = admins.store()
    run(admin(store).replace(ResourceType.TOPIC, "t", {"retention.ms": "1"}, validate_only=True))
    assert run(store.configs.get("topics", "t")) == {}
    assert notified(store) == []


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("log.retention.ms", "0", "must be unlimited (-1) or, greater than or equal to 1"),
        ("max.connections.per.ip", "0", "can be set to zero only if"),
        ("max.connections.per.ip.overrides", "h", "'h' is not host:limit"),
    ],
)
def test_no_broker_deletes_every_record_or_shuts_every_client_out(
    name: str, key: str, value: str, said: str
) -> None:
    store = admins.store()
    code, message = refused(admin(store).change(ResourceType.BROKER, name, [(key, SET, value)]))
    assert code == ErrorCode.INVALID_REQUEST
    assert said in message
    code, message = refused(admin(store).replace(ResourceType.BROKER, name, {key: value}))
    assert code == ErrorCode.INVALID_REQUEST
    assert said in message
    assert notified(store) == []


def test_broker_configs_for_one_and_for_all() -> None:
    store = admins.store()
    run(admin(store).replace(ResourceType.BROKER, "1", {"log.retention.ms": "1", "custom": "x"}))
    run(admin(store).change(ResourceType.BROKER, "", [("num.io.threads", SET, "9")]))
    assert run(store.configs.get_all("brokers")) == {
        "1": {"custom": "x", "log.retention.ms": "1"},
        "<default>": {"num.io.threads": "9"},
    }
    assert notified(store) == [ConfigChange("brokers", "1"), ConfigChange("brokers", "<default>")]


@pytest.mark.parametrize(
    ("resource_type", "name", "configs", "code", "message"),
    [
        (
            ResourceType.TOPIC,
            "x",
            {},
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'x' does not exist.",
        ),
        (
            ResourceType.TOPIC,
            "t",
            {"retention.ms": None},
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
        (
            ResourceType.TOPIC,
            "t",
            {"nonsense": "1"},
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: nonsense",
        ),
        (
            ResourceType.BROKER,
            "2",
            {},
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (
            ResourceType.BROKER,
            "one",
            {},
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: one",
        ),
        (
            ResourceType.BROKER,
            "1",
            {"broker.id": "2"},
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: Set(broker.id)",
        ),
        (
            ResourceType.BROKER,
            "",
            {"listeners": "x"},
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs at default cluster level,"
            " broker id must be specified: Set(listeners)",
        ),
        (
            ResourceType.BROKER,
            "1",
            {"listener.name.a.ssl.key.password": "secret"},
            ErrorCode.INVALID_REQUEST,
            "Password encoder secret not configured: cannot store listener.name.a.ssl.key.password",
        ),
        (
            ResourceType.BROKER,
            "",
            {"a.plug.in.ssl.key.password": "secret"},
            ErrorCode.INVALID_REQUEST,
            "Password config can be defined only at broker level",
        ),
        (
            8,
            "1",
            {},
            ErrorCode.INVALID_REQUEST,
            "AlterConfigs is only supported for topics and brokers, but resource type is 8",
        ),
    ],
)
def test_replacing_refused(
    resource_type: int,
    name: str,
    configs: dict[str, str | None],
    code: ErrorCode,
    message: str,
) -> None:
    store = admins.store()
    found = refused(admin(store).replace(resource_type, name, configs))
    assert found == (code, message)
    assert notified(store) == []


@pytest.mark.parametrize(
    ("ops", "code", "message"),
    [
        (
            [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys : retention.ms",
        ),
        (
            [("retention.ms", SET, None)],
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : SET:retention.ms",
        ),
        (
            [("retention.ms", APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: retention.ms",
        ),
        (
            [("nonsense", SUBTRACT, "1")],
            ErrorCode.INVALID_CONFIG,
            "Config value subtract is not allowed for config key: nonsense",
        ),
        (
            [("retention.ms", 7, "1")],
            ErrorCode.INVALID_REQUEST,
            "Unknown config operation 7",
        ),
        (
            [("cleanup.policy", APPEND, "shred")],
            ErrorCode.INVALID_CONFIG,
            f"{WHERE}(type=TOPIC, name='t'): Invalid value shred for configuration cleanup.policy:"
            " String must be one of: compact, delete",
        ),
    ],
)
def test_changes_refused(
    ops: list[tuple[str, int, str | None]], code: ErrorCode, message: str
) -> None:
    store = admins.store()
    assert refused(admin(store).change(ResourceType.TOPIC, "t", ops)) == (code, message)
    assert run(store.configs.get("topics", "t")) == {}


def test_without_a_controller_it_can_be_tried_again_later() -> None:
    store = admins.store(controller=False)
    code, _ = refused(admin(store).replace(ResourceType.TOPIC, "t", {}))
    assert code is ErrorCode.STALE_CONTROLLER_EPOCH
    assert notified(store) == []


def test_its_own_configs_are_checked_further_and_only_they() -> None:
    def check_own(configs: Mapping[str, str]) -> None:
        raise ConfigError(f"not {configs['my.key']}")

    store = admins.store()
    for validate_only in (False, True):
        change = admin(store, check_own).replace(
            ResourceType.BROKER, "1", {"my.key": "x"}, validate_only
        )
        assert refused(change) == (
            ErrorCode.INVALID_REQUEST,
            "not x",
        )
    assert run(store.configs.get("brokers", "1")) == {}
    run(admin(store, check_own).replace(ResourceType.BROKER, "", {"my.key": "x"}))
    assert run(store.configs.get("brokers", "<default>")) == {"my.key": "x"}


@pytest.mark.parametrize(
    ("kind", "entity_type", "key", "values"),
    [
        (ResourceType.GROUP, "groups", "consumer.session.timeout.ms", ("50000", "60000")),
        (ResourceType.CLIENT_METRICS, "client-metrics", "metrics", ("a", "b")),
    ],
)
def test_an_entity_of_any_name_ends_with_its_last_config(
    kind: ResourceType, entity_type: str, key: str, values: tuple[str, str]
) -> None:
    store = admins.store()
    for name, path in (("a/b", "a%2Fb"), ("..", "%2E%2E")):
        for value in values:
            run(admin(store).change(kind, name, [(key, SET, value)]))
        assert run(store.configs.get_all(entity_type)) == {path: {key: values[1]}}
        assert notified(store)[-1] == ConfigChange(entity_type, path)
        run(admin(store).change(kind, name, [(key, DELETE, None)]))
        assert run(store.configs.get_all(entity_type)) == {}


def test_lists_of_client_metrics_grow() -> None:
    store = admins.store()
    for op in (("metrics", APPEND, "a"), ("metrics", APPEND, "b"), ("metrics", SUBTRACT, "a")):
        run(admin(store).change(ResourceType.CLIENT_METRICS, "m", [op]))
    assert run(store.configs.get("client-metrics", "m")) == {"metrics": "b"}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "code", "message"),
    [
        (16, "", {}, ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        (32, "", {}, ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
        (32, "g", {"x": "1"}, ErrorCode.INVALID_CONFIG, "Unknown group config name: x"),
        (
            16,
            "m",
            {"x": "1"},
            ErrorCode.INVALID_REQUEST,
            "Unknown client metrics configuration: x",
        ),
        (
            16,
            "m",
            {"match": "x"},
            ErrorCode.INVALID_CONFIG,
            "Illegal client matching pattern: x",
        ),
    ],
)
def test_client_metrics_and_groups_refused(
    kind: int, name: str, configs: dict[str, str | None], code: ErrorCode, message: str
) -> None:
    assert refused(admin(admins.store()).replace(kind, name, configs)) == (code, message)


def test_passwords_are_stored_encoded_and_stay_when_something_else_changes() -> None:
    store, name = admins.store(), "listener.name.a.ssl.keystore.password"
    seen: list[Mapping[str, str]] = []
    made = admin(store, seen.append, secret="s")
    run(made.change(ResourceType.BROKER, "1", [(name, SET, "changeit")]))
    run(
        made.change(
            ResourceType.BROKER, "1", [("listener.name.a.ssl.keystore.location", SET, "/k")]
        )
    )
    stored = run(store.configs.get("brokers", "1"))
    assert "changeit" not in stored[name]
    assert PasswordEncoder("s").decode(stored[name]) == "changeit"
    # Whoever checks the stores needs what opens them.
    assert seen[1] == {name: "changeit", "listener.name.a.ssl.keystore.location": "/k"}
    run(made.change(ResourceType.BROKER, "1", [(name, DELETE, None)]))
    assert name not in run(store.configs.get("brokers", "1"))


def test_each_name_is_looked_up_however_many_are_changed() -> None:
    """40,000 names kept the event loop for 46 seconds: each was looked for among all others."""
    Name = counting_comparisons(str)
    ops = [(Name(f"name-{n}"), AlterOp.SET, "1") for n in range(200)]
    with pytest.raises(ApiError):
        run(admin(admins.store()).change(ResourceType.TOPIC, "t", ops))
    assert Name.times < 10 * len(ops)
