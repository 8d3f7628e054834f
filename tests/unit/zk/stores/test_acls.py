"""Which ACL a znode gets."""

from __future__ import annotations

import pytest

from kafkapy.zk.stores.acls import CREATOR_ALL, WORLD_ALL, WORLD_READ, default_acls


@pytest.mark.parametrize(
    "path",
    ["/brokers/topics/t", "/config", "/config/topics/t", "/config/usersx", "/controller", "/x"],
)
def test_secure_nodes_are_the_creators_and_read_by_all(path: str) -> None:
    assert default_acls(path, secure=True) == (CREATOR_ALL, WORLD_READ)


@pytest.mark.parametrize(
    "path",
    ["/config/users", "/config/users/alice", "/config/brokers/1", "/delegation_token/tokens/t"],
)
def test_secrets_are_the_creators_alone(path: str) -> None:
    assert default_acls(path, secure=True) == (CREATOR_ALL,)


def test_consumers_stay_open() -> None:
    assert default_acls("/consumers", secure=True) == (WORLD_ALL,)
    assert default_acls("/consumers/group/offsets", secure=True) == (WORLD_ALL,)
    assert default_acls("/consumersx", secure=True) != (WORLD_ALL,)


def test_without_security_everything_is_open() -> None:
    assert default_acls("/config/users/alice", secure=False) == (WORLD_ALL,)
