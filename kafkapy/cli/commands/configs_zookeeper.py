"""`kafkapy configs --zookeeper`: the older form of `ConfigCommand`, with the text of Kafka 2.7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.output import Report

if TYPE_CHECKING:
    from kafkapy.tools.config_changes import ConfigChange

DEPRECATED: Final = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.",
    "Use --bootstrap-server instead to specify a broker to connect to.",
)
ENTITY_TYPES: Final = ("topics", "clients", "users", "brokers", "ips")


def describe(
    connect: str,
    entities: Sequence[tuple[str, str | None]],
    properties: Mapping[str, str] | None = None,
) -> Report:
    """The configs of entities, each on one line.

    Raises:
        ZooKeeperUnavailable: ZooKeeper does not answer.
    """
    from kafkapy.tools.zookeeper import configs

    found = configs.describe(connect, [configs.NamedEntity(*e) for e in entities], properties)
    text = [
        f"Configs for {configs.entity_text(key)} are "
        + ",".join(f"{name}={value}" for name, value in values.items())
        for key, values in found.items()
    ]
    data = [
        {
            "entities": [{"entity_type": e.type, "entity_name": e.name} for e in key],
            "configs": values,
        }
        for key, values in found.items()
    ]
    return Report("configs", data, [*DEPRECATED, *text])


def alter(
    connect: str,
    entities: Sequence[tuple[str, str | None]],
    change: ConfigChange,
    properties: Mapping[str, str] | None = None,
) -> Report:
    """Change the configs of one entity.

    Raises:
        ConfigError: the change is not allowed.
        ZooKeeperUnavailable: ZooKeeper does not answer.
    """
    from kafkapy.cli.views.configs import without_secrets
    from kafkapy.tools.zookeeper import configs

    named = [configs.NamedEntity(*entity) for entity in entities]
    configs.alter(connect, named, change, properties)
    line = f"Completed updating config for entity: {configs.entity_text(named)}."
    data = {
        "entities": [{"entity_type": e.type, "entity_name": e.name} for e in named],
        "set": without_secrets(change.sets),
        "deleted": list(change.deletes),
    }
    return Report("configs", [data], [*DEPRECATED, line])
