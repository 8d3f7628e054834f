"""A ZooKeeper of our own, and clients of it, for the tests of whole trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from kazoo.client import KazooClient

from kafkapy.tools.zookeeper.shell import connect
from tests.harness.processes.own_zookeeper import OwnZooKeeper

Connect = Callable[[str], KazooClient]


@pytest.fixture(scope="module")
def own_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnZooKeeper]:
    with OwnZooKeeper(tmp_path_factory.mktemp("own") / "data") as server:
        yield server


@pytest.fixture
def client_of(own_zookeeper: OwnZooKeeper) -> Iterator[Connect]:
    """Clients by chroot, which need not be there; closed with the test."""
    with ExitStack() as stack:

        def made(chroot: str) -> KazooClient:
            client = connect(own_zookeeper.connect(chroot))
            stack.callback(client.close)
            stack.callback(client.stop)
            return client

        yield made
