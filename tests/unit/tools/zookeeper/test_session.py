"""One piece of work in a session with an ensemble."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.zookeeper.session import with_zookeeper
from kafkapy.zk.kazoo.adapter import ZooKeeperUnavailable
from kafkapy.zk.stores.store import ZkStore


async def nothing(store: ZkStore) -> None:
    raise AssertionError("there is no session")


def test_nobody_there_is_told_within_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    limit = {"zookeeper.connection.timeout.ms": "300"}
    with pytest.raises(ZooKeeperUnavailable, match=r"no answer within"):
        with_zookeeper("127.0.0.1:1", nothing, limit)
    assert capsys.readouterr().err == ""  # the error tells it, once


def test_a_malformed_address() -> None:
    with pytest.raises(ConfigError, match="is not host:port"):
        with_zookeeper("a b", nothing)
