"""A broker that gets other listeners: limits of connections stay in force."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

from kafkapy.server.broker import Broker
from kafkapy.server.config.kafka_config import KafkaConfig
from tests.harness.cores.server_parts import Parts

LISTENERS = {
    "listeners": "PLAINTEXT://:1,B://:2",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
}


def test_new_listeners_do_not_bring_back_older_limits(tmp_path: Path) -> None:
    """They wait for their turn, while newer configs take effect."""
    parts = Parts(tmp_path)
    applier = parts.config_applier()
    applier.apply("brokers", "1", {"max.connection.creation.rate": "9", "max.connections": "8"})
    waited = KafkaConfig({"log.dirs": "/d", "max.connection.creation.rate": "5", **LISTENERS})
    broker: Any = SimpleNamespace(
        _configs=parts.configs,
        _quotas=parts.client_quotas,
        _connection_limits=parts.connection_limits,
        _member=SimpleNamespace(update_endpoints=AsyncMock()),
    )
    asyncio.run(Broker._update_listeners(broker, waited, ()))
    creations = parts.client_quotas.creations
    assert {name: usage.limit for name, usage in creations.listeners.items()} == {
        "PLAINTEXT": 9,
        "B": 9,
    }
    assert parts.connection_limits._max == 8
