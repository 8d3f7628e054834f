"""Configs in the log: warnings for those without effect, and hidden values."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kafkapy.common import topic_configs
from kafkapy.metadata.dynamic_broker_configs import QUOTAS
from kafkapy.server.config.broker_config_table import AT_START_ONLY, NO_EFFECT, REMOVED
from kafkapy.server.config.kafka_config import BROKER_CONFIGS

HIDDEN: Final = "[hidden]"

logger = logging.getLogger("kafka.server.KafkaConfig")

_LISTENER_PREFIX: Final = re.compile(r"listener\.name\.[^.]+\.(?P<name>.+)")
_MECHANISM_PREFIX: Final = re.compile(r"[^.]+\.(?P<name>sasl\..+)")


def base_config(name: str) -> str:
    """The config that `listener.name.<listener>.[<mechanism>.]<config>` sets. Other names are
    returned unchanged."""
    for prefix in (_LISTENER_PREFIX, _MECHANISM_PREFIX):
        found = prefix.fullmatch(name)
        if found is not None and name not in BROKER_CONFIGS.keys:
            name = found["name"]
    return name


def ineffective_broker_configs(
    names: Iterable[str], *, dynamic: bool = False
) -> Iterator[tuple[str, str]]:
    """The broker configs without effect, and why. `dynamic` is for configs set at run time."""
    for name in sorted(names):
        base = base_config(name)
        if base in NO_EFFECT:
            yield name, f"has no effect: {NO_EFFECT[base]}"
        elif dynamic and base in AT_START_ONLY:
            yield name, "has no effect as a dynamic config: set it in server.properties and restart"
        elif base in REMOVED:
            yield name, f"has no effect since Kafka 3.0: write instead {REMOVED[base]}"
        elif base not in BROKER_CONFIGS.keys and base not in QUOTAS:
            yield name, f"is not known and has no effect{_suggestion(base)}"


def _suggestion(name: str) -> str:
    """A suggestion: the config with a name similar to an unknown one. Empty if none is similar."""
    import difflib  # seldom needed

    similar = difflib.get_close_matches(name, BROKER_CONFIGS.keys, n=1, cutoff=0.85)
    return f"; did you mean {similar[0]}?" if similar else ""


def warn_of_broker_configs(names: Iterable[str], *, dynamic: bool = False) -> None:
    """Log a warning for each broker config without effect."""
    for name, reason in ineffective_broker_configs(names, dynamic=dynamic):
        logger.warning("The configuration '%s' %s", name, reason)


def without_secrets(configs: Mapping[str, str]) -> dict[str, str]:
    """A broker's configs for the log. The values of passwords and of unknown configs, which may be
    passwords, are hidden.
    """
    return {name: value if _is_public(name) else HIDDEN for name, value in configs.items()}


def _is_public(name: str) -> bool:
    base = base_config(name)
    key = BROKER_CONFIGS.keys.get(base)
    return base in QUOTAS if key is None else not key.sensitive


def warn_of_topic_configs(topic: str, names: Iterable[str]) -> None:
    """Log a warning for each topic config without effect."""
    for name in sorted(names):
        if name in topic_configs.NO_EFFECT:
            reason = topic_configs.NO_EFFECT[name]
            logger.warning("The config '%s' of topic %s has no effect: %s", name, topic, reason)
