"""The port has eight verbs, and errors that name their node."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import KafkapyError
from kafkapy.zk import zookeeper
from kafkapy.zk.embedded.memory import MemoryZooKeeper


def test_eight_verbs() -> None:
    verbs = {name for name in vars(zookeeper.ZooKeeper) if not name.startswith("_")}
    assert verbs - {"session_id"} == {
        *("get", "exists", "children", "create", "set", "delete", "multi", "pipeline"),
    }
    assert verbs <= set(dir(MemoryZooKeeper))


@pytest.mark.parametrize(
    "error",
    [
        zookeeper.NoNode,
        zookeeper.NodeExists,
        zookeeper.BadVersion,
        zookeeper.NotEmpty,
        zookeeper.SessionExpired,
        zookeeper.StoreUnavailable,
    ],
)
def test_errors_say_which_node(error: type[zookeeper.ZooKeeperError]) -> None:
    made = error("/a/b")
    assert isinstance(made, KafkapyError)
    assert made.path == "/a/b"
    assert str(made) == f"{error.__name__} for /a/b"
