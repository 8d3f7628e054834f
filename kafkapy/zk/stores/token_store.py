"""Delegation tokens and their change notifications in ZooKeeper (`DelegationTokenInfoZNode`).

A token's HMAC is not stored: it is computed with the brokers' secret. A notification contains the
id of a token that was changed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import orjson

from kafkapy.common.errors import ConfigError
from kafkapy.security.acls import parse_principal
from kafkapy.security.delegation_tokens import TokenInformation
from kafkapy.zk.stores import change_notifications, paths
from kafkapy.zk.stores.fencing import ensure_path
from kafkapy.zk.stores.znodes import ZnodeError
from kafkapy.zk.zookeeper import (
    BadVersion,
    Create,
    CreateMode,
    Delete,
    Get,
    NodeExists,
    NoNode,
    Op,
    SetData,
    Watch,
    Znode,
    ZooKeeper,
    ZooKeeperError,
)

VERSION: Final = 3
_FIRST_WITH_REQUESTER: Final = 3  # KIP-373


class TokenStore:
    """All tokens."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk

    async def create_paths(self) -> None:
        """Create the nodes that a broker with a secret needs."""
        for path in (paths.TOKEN_CHANGES, paths.TOKENS):
            await ensure_path(self._zk, path)

    async def get_all(self) -> dict[str, TokenInformation | ZnodeError]:
        """All tokens by id, with an error in place of an unreadable token."""
        ids = await self._zk.children(paths.TOKENS)
        requests = [Get(_path(token_id)) for token_id in ids]
        found: dict[str, TokenInformation | ZnodeError] = {}
        answers = await self._zk.pipeline(requests)
        for token_id, request, answer in zip(ids, requests, answers, strict=True):
            if isinstance(answer, Znode):
                try:
                    found[token_id] = decode_token(request.path, answer.data)
                except ZnodeError as error:
                    found[token_id] = error
            elif not isinstance(answer, NoNode) and isinstance(answer, ZooKeeperError):
                raise answer
        return found

    async def get(self, token_id: str) -> tuple[TokenInformation, int] | None:
        """A token and its node's data version; None if the token does not exist.

        Raises:
            ZnodeError: the token's node is unreadable.
        """
        path = _path(token_id)
        try:
            node = await self._zk.get(path)
        except NoNode:
            return None
        return decode_token(path, node.data), node.stat.version

    async def create(self, token: TokenInformation) -> None:
        """Store a new token. Raises NodeExists.

        After a lost answer the creation is sent again. NodeExists is then not raised, because the
        node has this token.
        """
        try:
            await self._zk.create(_path(token.token_id), encode_token(token))
        except NodeExists:
            if await self.get(token.token_id) != (token, 0):
                raise

    async def replace(self, token: TokenInformation, version: int) -> bool:
        """Store a token's new state, unless it was changed or deleted since `version`. Notifies
        every broker.

        After a lost answer the write is sent again. It then succeeds, because the node has this
        state in the next version.
        """
        path = _path(token.token_id)
        try:
            await self._write(SetData(path, encode_token(token), version), token.token_id)
        except BadVersion:
            return await self.get(token.token_id) == (token, version + 1)
        except NoNode as error:
            if error.path != path:
                raise
            return False
        return True

    async def delete(self, token_id: str, version: int) -> bool:
        """Delete a token, unless it was changed since `version`. Notifies every broker.

        A missing token counts as deleted, because a deletion is sent again after a lost answer.
        """
        path = _path(token_id)
        try:
            await self._write(Delete(path, version), token_id)
        except BadVersion:
            return False
        except NoNode as error:
            if error.path != path:
                raise
            return True
        return True

    async def _write(self, change: Op, token_id: str) -> None:
        """Change a token and notify every broker, in one transaction. With two, a broker that ends
        between them would notify no broker, and the next attempt would not either: it would find an
        expired or missing token.
        """
        await self._zk.multi([change, _notification(token_id)])

    async def notify(self, token_id: str) -> None:
        """Notify every broker to read the token again."""
        await self._zk.multi([_notification(token_id)])

    async def changes(self, watch: Watch | None = None) -> list[int]:
        """The sequence numbers of all notifications, ascending."""
        return await change_notifications.sequences(
            self._zk, paths.TOKEN_CHANGES, paths.TOKEN_CHANGE_PREFIX, watch
        )

    async def changed_key(self, sequence: int) -> str | None:
        """The id of the token that a notification names; None if it was purged or names none."""
        try:
            node = await self._zk.get(_change_path(sequence))
        except NoNode:
            return None
        return node.data.decode(errors="replace") or None

    async def purge(self, sequences: Iterable[int], now_ms: int) -> None:
        """Delete the notifications that are older than 15 minutes."""
        await change_notifications.purge(self._zk, map(_change_path, sequences), now_ms)


def _path(token_id: str) -> str:
    return f"{paths.TOKENS}/{token_id}"


def _notification(token_id: str) -> Create:
    path = f"{paths.TOKEN_CHANGES}/{paths.TOKEN_CHANGE_PREFIX}"
    return Create(path, token_id.encode(), CreateMode.PERSISTENT_SEQUENTIAL)


def _change_path(sequence: int) -> str:
    return f"{paths.TOKEN_CHANGES}/{paths.TOKEN_CHANGE_PREFIX}{sequence:010d}"


def encode_token(token: TokenInformation) -> bytes:
    """`/delegation_token/tokens/<id>`, version 3, with the keys in Kafka's order."""
    node = {
        "issueTimestamp": token.issue_ms,
        "renewers": [paths.sanitize(renewer) for renewer in token.renewers],
        "tokenRequester": paths.sanitize(token.requester),
        "tokenId": token.token_id,
        "owner": paths.sanitize(token.owner),
        "expiryTimestamp": token.expiry_ms,
        "maxTimestamp": token.max_ms,
        "version": VERSION,
    }
    return orjson.dumps(node)


def decode_token(path: str, data: bytes) -> TokenInformation:
    """Versions 1 to 3. Before version 3, the owner of a token is also its requester."""
    try:
        node = orjson.loads(data)
        if not 1 <= node["version"] <= VERSION:
            raise ZnodeError(path, f"version {node['version']} is none of 1 to {VERSION}")
        owner = _principal(node["owner"])
        has_requester = node["version"] >= _FIRST_WITH_REQUESTER
        return TokenInformation(
            str(node["tokenId"]),
            owner,
            _principal(node["tokenRequester"]) if has_requester else owner,
            tuple(_principal(renewer) for renewer in node["renewers"]),
            int(node["issueTimestamp"]),
            int(node["maxTimestamp"]),
            int(node["expiryTimestamp"]),
        )
    except (ConfigError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ZnodeError(path, repr(error)) from error


def _principal(text: str) -> str:
    principal = paths.desanitize(text)
    parse_principal(principal)
    return principal
