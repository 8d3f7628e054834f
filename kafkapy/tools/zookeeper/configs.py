"""Configs as znodes, as `configs --zookeeper` reads and writes them (`ConfigCommand` up to 2.8)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_configs import validate_topic_configs
from kafkapy.security.password_encoder import (
    PREFIX,
    SECRET,
    encode_configs,
    is_password,
    password_encoder,
)
from kafkapy.tools.config_changes import ConfigChange
from kafkapy.tools.scram_changes import with_salted_credentials
from kafkapy.tools.zookeeper.session import with_zookeeper
from kafkapy.zk.stores.config_store import until_unchanged
from kafkapy.zk.stores.paths import DEFAULT_ENTITY, desanitize, sanitize
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import NoNode

# A running broker applies these from the znodes, without a request.
REPLICATION_RATES: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
_WORDS: Final = {
    "topics": "topic",
    "users": "user-principal",
    "clients": "client-id",
    "brokers": "brokers",
    "ips": "ip",
}
_SANITIZED: Final = ("users", "clients", "ips")


class NamedEntity(NamedTuple):
    """A type and a name. "" is the default entity, None means all entities of the type."""

    type: str
    name: str | None


EntityConfigs = dict[tuple[NamedEntity, ...], dict[str, str]]


def entity_text(entities: Sequence[NamedEntity]) -> str:
    """`topic 'foo'`, `default client-id`, `user-principal 'u', client-id 'c'`."""
    shown = []
    for kind, name in entities:
        word = _WORDS[kind]
        shown.append(kind if name is None else f"{word} '{name}'" if name else f"default {word}")
    return ", ".join(shown)


def node_of(entities: Sequence[NamedEntity]) -> tuple[str, str]:
    """The type and the node name below `/config`; users with clients are `u/clients/c`."""
    ordered = sorted(entities, key=lambda entity: entity.type != "users")
    names = []
    for kind, name in ordered:
        assert name is not None
        sanitized = sanitize(name) if kind in _SANITIZED else name
        names.append(sanitized if name else DEFAULT_ENTITY)
    return ordered[0].type, "/clients/".join(names)


def entities_of_node(kind: str, node: str) -> tuple[NamedEntity, ...]:
    """The entities of a node: the inverse of `node_of`."""
    types = (kind, "clients")
    return tuple(
        NamedEntity(each, "" if name == DEFAULT_ENTITY else desanitize(name))
        for each, name in zip(types, node.split("/clients/"), strict=False)
    )


def describe(
    connect: str,
    entities: Sequence[NamedEntity],
    properties: Mapping[str, str] | None = None,
) -> EntityConfigs:
    """The configs of one entity, or of all entities of the given types.

    An entity without configs is no error. If all are described, entities without configs are left
    out, except topics.

    Raises:
        ZooKeeperUnavailable: ZooKeeper does not answer.
    """

    async def work(store: ZkStore) -> EntityConfigs:
        if all(entity.name is not None for entity in entities):
            kind, node = node_of(entities)
            return {tuple(entities): await store.configs.get(kind, node)}
        kind = "users" if len(entities) > 1 else entities[0].type
        found = await store.configs.get_all(kind)
        if kind == "topics":
            found = {name: found.get(name, {}) for name in await store.topics.names()}
        named = {entities_of_node(kind, node): values for node, values in found.items()}
        return {key: values for key, values in named.items() if values or kind == "topics"}

    found = with_zookeeper(connect, work, properties)
    return {
        key: values
        for key, values in found.items()
        if len(key) == len(entities) and _matches(key, entities)
    }


def _matches(entities: Sequence[NamedEntity], filters: Sequence[NamedEntity]) -> bool:
    wanted = {entity.type: entity.name for entity in filters}
    return all(wanted[entity.type] in (None, entity.name) for entity in entities)


def alter(
    connect: str,
    entities: Sequence[NamedEntity],
    change: ConfigChange,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Merge a change into an entity's configs, and notify the brokers.

    Raises:
        ConfigError: a key to delete is not set, a value is not allowed, or the broker runs.
        ZooKeeperUnavailable: ZooKeeper does not answer.
    """
    kind, node = node_of(entities)
    if kind == "users":
        change = with_salted_credentials(change)
    if kind == "brokers":
        change = with_passwords_encoded(node, change)

    async def work(store: ZkStore) -> None:
        live = await _live_brokers(store) if kind == "brokers" else []
        refuse_if_running(node, live, (*change.sets, *change.deletes))
        if kind == "topics" and not await store.topics.exists(node):
            raise ConfigError(f"Topic {node} does not exist.")
        before, version = await store.configs.get_versioned(kind, node)
        configs = merged(before, change)
        if kind == "topics":
            validate_topic_configs(configs)
        if kind == "brokers" and node != DEFAULT_ENTITY and not _is_running(node, live):
            await store.configs.set_before_start(node, configs)
            return
        await store.configs.set(kind, node, configs, version, needs_controller=False)

    with_zookeeper(connect, lambda store: until_unchanged(partial(work, store)), properties)


def with_passwords_encoded(node: str, change: ConfigChange) -> ConfigChange:
    """The change with encoded passwords, as brokers expect it in the znode. The change's keys
    `password.encoder.*` configure the encoding, and are not stored.

    Raises:
        ConfigError: the secret is missing, or the passwords are for the default entity.
    """
    settings = {key: text for key, text in change.sets.items() if key.startswith(PREFIX)}
    sets = {key: text for key, text in change.sets.items() if key not in settings}
    passwords = ",".join(filter(is_password, sets))
    if not passwords:
        return replace(change, sets=sets)
    if node == DEFAULT_ENTITY:
        raise ConfigError(
            "Cannot update these configs at default cluster level, broker id must be specified:"
            f" {passwords}"
        )
    encoder = password_encoder(settings)
    if encoder is None:
        raise ConfigError(
            f"requirement failed: {SECRET} must be specified to update {passwords}. It, and how to"
            f" encode ({PREFIX}*), is not stored in ZooKeeper; the broker has the same secret"
        )
    return replace(change, sets=encode_configs(sets, encoder, os.urandom))


async def _live_brokers(store: ZkStore) -> list[int]:
    try:
        return await store.brokers.ids()
    except NoNode:  # no broker has ever registered
        return []


def _is_running(node: str, live: Sequence[int]) -> bool:
    return bool(live) if node == DEFAULT_ENTITY else node in map(str, live)


def merged(present: Mapping[str, str], change: ConfigChange) -> dict[str, str]:
    """
    Raises:
        ConfigError: a key to delete is not set.
    """
    change.refuse_unknown_deletes(present)
    kept = {key: value for key, value in present.items() if key not in change.deletes}
    return kept | dict(change.sets)


def refuse_if_running(node: str, live: Sequence[int], keys: Iterable[str]) -> None:
    """Refuse changes of a running broker's configs, except replication rates. The broker checks its
    configs, so they are changed with a request to it.

    Raises:
        ConfigError: with the refused keys.
    """
    others = [key for key in keys if key not in REPLICATION_RATES]
    if others and _is_running(node, live):
        raise ConfigError(
            "requirement failed: --bootstrap-server option must be specified to update broker"
            f" configs {','.join(others)}: the broker runs and checks them"
        )
