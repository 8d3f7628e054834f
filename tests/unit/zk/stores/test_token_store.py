"""Tokens in ZooKeeper: the nodes are Kafka's, byte for byte, and a race loses nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkapy.security.delegation_tokens import TokenInformation
from kafkapy.zk.embedded.memory import MemoryZooKeeper
from kafkapy.zk.stores.change_notifications import CHANGE_EXPIRATION_MS
from kafkapy.zk.stores.token_store import TokenStore, decode_token, encode_token
from kafkapy.zk.stores.znodes import ZnodeError
from kafkapy.zk.zookeeper import NodeExists, Op, OpResult, WatchEvent, ZooKeeper
from tests.harness.cores.znodes import AnswerLosingZooKeeper, run, server

# As Apache Kafka 3.9.1 wrote it.
KAFKAS = (
    b'{"issueTimestamp":1795376790118,"renewers":["User%3Abob"],"tokenRequester":"User%3Aalice",'
    b'"tokenId":"Q1UP9lm5SUGazcrUvBFOpA","owner":"User%3Aalice","expiryTimestamp":1795463190118,'
    b'"maxTimestamp":1795981590118,"version":3}'
)
TOKEN = TokenInformation(
    "Q1UP9lm5SUGazcrUvBFOpA",
    "User:alice",
    "User:alice",
    ("User:bob",),
    1795376790118,
    1795981590118,
    1795463190118,
)
ODD = TokenInformation("i", "User:CN=a b,O=ü", "User:*", (), 1, 3, 2)


def prepared() -> tuple[TokenStore, ZooKeeper]:
    zk = server().connect()
    store = TokenStore(zk)
    run(store.create_paths())
    run(store.create_paths())
    return store, zk


def test_nodes_are_kafkas_bytes() -> None:
    assert encode_token(TOKEN) == KAFKAS
    assert decode_token("/t", KAFKAS) == TOKEN
    assert decode_token("/t", encode_token(ODD)) == ODD
    assert b'"owner":"User%3ACN%3Da%20b%2CO%3D%C3%BC"' in encode_token(ODD)
    assert b'"tokenRequester":"User%3A%2A"' in encode_token(ODD)


def test_before_kip_373_nobody_asks_for_others() -> None:
    old = KAFKAS.replace(b'"tokenRequester":"User%3Aalice",', b"").replace(b":3}", b":1}")
    assert decode_token("/t", old) == TOKEN


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        KAFKAS.replace(b":3}", b":4}"),
        KAFKAS.replace(b":3}", b":0}"),
        KAFKAS.replace(b"%3Abob", b"%3A"),
        KAFKAS.replace(b'["User%3Abob"]', b"null"),
        KAFKAS.replace(b'["User%3Abob"]', b"[{}]"),
    ],
)
def test_what_cannot_be_read_is_named(data: bytes) -> None:
    with pytest.raises(ZnodeError, match="/delegation_token/tokens/x"):
        decode_token("/delegation_token/tokens/x", data)


def test_a_token_lives_in_its_node() -> None:
    store, zk = prepared()
    assert run(store.get(TOKEN.token_id)) is None
    run(store.create(TOKEN))
    with pytest.raises(NodeExists):
        run(store.create(TOKEN._replace(expiry_ms=TOKEN.max_ms)))
    path = f"/delegation_token/tokens/{TOKEN.token_id}"
    assert run(zk.get(path)).data == KAFKAS
    assert run(store.get_all()) == {TOKEN.token_id: TOKEN}
    run(zk.create("/delegation_token/tokens/broken", b"{}"))
    broken = run(store.get_all())["broken"]
    assert isinstance(broken, ZnodeError)
    assert broken.path == "/delegation_token/tokens/broken"
    assert run(store.get(TOKEN.token_id)) == (TOKEN, 0)


def test_who_knows_an_old_version_changes_nothing() -> None:
    store, _ = prepared()
    run(store.create(TOKEN))
    later = TOKEN._replace(expiry_ms=TOKEN.max_ms)
    assert run(store.replace(later, 0))
    assert not run(store.replace(TOKEN, 0))
    assert not run(store.delete(TOKEN.token_id, 0))
    assert run(store.get(TOKEN.token_id)) == (later, 1)
    assert run(store.delete(TOKEN.token_id, 1))
    assert run(store.delete(TOKEN.token_id, 1)), "as after a lost answer"
    assert not run(store.replace(TOKEN, 1))


def test_a_write_whose_answer_was_lost_counts_as_written() -> None:
    """The session sends it again. Nobody would be told of a token that has expired with it."""
    zk = AnswerLosingZooKeeper(server())
    store = TokenStore(zk)
    run(store.create_paths())
    zk.lost_path = f"/delegation_token/tokens/{TOKEN.token_id}"
    run(store.create(TOKEN))
    zk.lost_path = f"/delegation_token/tokens/{TOKEN.token_id}"
    assert run(store.replace(TOKEN._replace(expiry_ms=TOKEN.issue_ms), 0))
    assert not run(store.replace(TOKEN, 0))


def test_a_change_and_its_notification_are_one_write() -> None:
    """A broker that ends between two would leave a token that the others go on to accept."""

    class Ending(MemoryZooKeeper):
        writes = 1

        async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
            assert self.writes, "a second write"
            self.writes -= 1
            return await super().multi(ops)

    ensemble = server()
    store = TokenStore(ensemble.connect())
    run(store.create_paths())
    run(store.create(TOKEN))
    assert run(TokenStore(Ending(ensemble)).replace(TOKEN._replace(expiry_ms=0), 0))
    assert run(store.changes()) == [0]
    assert run(TokenStore(Ending(ensemble)).delete(TOKEN.token_id, 1))
    assert run(store.changes()) == [0, 1]
    assert run(store.changed_key(1)) == TOKEN.token_id


def test_every_broker_is_told() -> None:
    store, zk = prepared()
    seen: list[WatchEvent] = []
    assert run(store.changes(seen.append)) == []
    run(store.notify("some-id"))
    assert len(seen) == 1
    node = run(zk.get("/delegation_token/token_changes/token_change_0000000000"))
    assert node.data == b"some-id"
    assert run(store.changes()) == [0]
    assert run(store.changed_key(0)) == "some-id"
    run(store.purge([0], node.stat.ctime_ms + CHANGE_EXPIRATION_MS + 1))
    assert run(store.changes()) == []
    assert run(store.changed_key(0)) is None
