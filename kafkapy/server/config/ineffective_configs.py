"""Warnings for configs that are accepted but have no effect."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from typing import Final

from kafkapy.common import topic_configs
from kafkapy.metadata.dynamic_broker_configs import QUOTAS
from kafkapy.server.config.broker_config_table import AT_START_ONLY, NO_EFFECT, REMOVED
from kafkapy.server.config.kafka_config import BROKER_CONFIGS

logger = logging.getLogger("kafka.server.KafkaConfig")

_OF_LISTENER: Final = re.compile(r"listener\.name\.[^.]+\.(?P<name>.+)")
_OF_MECHANISM: Final = re.compile(r"[^.]+\.(?P<name>sasl\..+)")


def config_behind(name: str) -> str:
    """The config that `listener.name.<listener>.[<mechanism>.]<config>` sets. Other names are
    returned unchanged."""
    for prefix in (_OF_LISTENER, _OF_MECHANISM):
        found = prefix.fullmatch(name)
        if found is not None and name not in BROKER_CONFIGS.keys:
            name = found["name"]
    return name


def of_broker(names: Iterable[str], *, dynamic: bool = False) -> Iterator[tuple[str, str]]:
    """The broker configs without effect, and why. `dynamic` is for configs set at run time."""
    for name in sorted(names):
        behind = config_behind(name)
        if behind in NO_EFFECT:
            yield name, f"has no effect: {NO_EFFECT[behind]}"
        elif dynamic and behind in AT_START_ONLY:
            yield name, "has no effect as a dynamic config: set it in server.properties and restart"
        elif behind in REMOVED:
            yield name, f"has no effect since Kafka 3.0: write instead {REMOVED[behind]}"
        elif behind not in BROKER_CONFIGS.keys and behind not in QUOTAS:
            yield name, f"is not known and has no effect{_meant(behind)}"


def _meant(name: str) -> str:
    """A suggestion: the config with a name similar to an unknown one. Empty if none is similar."""
    import difflib  # seldom needed

    near = difflib.get_close_matches(name, BROKER_CONFIGS.keys, n=1, cutoff=0.85)
    return f"; did you mean {near[0]}?" if near else ""


def warn_of_broker(names: Iterable[str], *, dynamic: bool = False) -> None:
    """Log a warning for each broker config without effect."""
    for name, why in of_broker(names, dynamic=dynamic):
        logger.warning("The configuration '%s' %s", name, why)


def warn_of_topic(topic: str, names: Iterable[str]) -> None:
    """Log a warning for each topic config without effect."""
    for name in sorted(names):
        if name in topic_configs.NO_EFFECT:
            why = topic_configs.NO_EFFECT[name]
            logger.warning("The config '%s' of topic %s has no effect: %s", name, topic, why)
