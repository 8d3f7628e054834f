"""The file of the embedded store: a snapshot of the tree, then one frame for each write.

A frame is `u32 length, u32 CRC-32 of the payload, payload`, big-endian. The payload is JSON: one
transaction, or a list of transactions that are made durable together. Every append is forced to
disk before a reply is sent, so a crash can damage only the last frame: recovery truncates at the
first incomplete frame. After any other damage the store does not start, since a cluster must not
lose topics silently. Each recovery writes a new snapshot. When the file has doubled, the next
appends write a new snapshot too, one slice each, because a whole one would delay all clients.

Format 2 adds the data of a ZooKeeper server: ACLs, sessions, null data. Format 1 is read as well.
"""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Protocol

import orjson

from kafkapy.common.errors import KafkapyError
from kafkapy.zk.embedded.znode_tree import (
    AccessList,
    CloseSession,
    CreateZnode,
    OpenSession,
    SetAcl,
    Transaction,
    TreeNode,
    TreeOp,
    WriteZnode,
    ZnodeTree,
)
from kafkapy.zk.zookeeper import (
    Check,
    Create,
    CreateMode,
    Delete,
    SetData,
    ZnodeStat,
    ZooKeeperError,
)

_FRAME: Final = struct.Struct(">II")
_FORMAT: Final = 2
_GROWTH_BYTES_MIN: Final = 1 << 20
_SLICE_NODES: Final = 256
_SLICE_BYTES: Final = 1 << 18  # of data; a slice takes some 3 ms
_FRAME_BYTES_PER_NODE: Final = 256

_log = logging.getLogger("kafkapy.zk.embedded.journal")


class JournalCorrupt(KafkapyError):
    """The embedded store's file has damage that no crash can cause."""


class Rewrite(Protocol):
    """The next content of the file, while it is written. The present content stays until
    `finish`.
    """

    def write(self, data: bytes) -> None:
        """Append bytes."""
        ...

    def finish(self, head: bytes) -> None:
        """Write `head` over the first bytes, and replace the present content atomically."""
        ...

    def abandon(self) -> None:
        """Discard the new content."""
        ...


class JournalFile(Protocol):
    """The operations on the file, which raise OSError. `append` and `Rewrite.finish` are durable on
    return.
    """

    def read(self) -> bytes:
        """The whole file; `b""` if there is none."""
        ...

    def append(self, data: bytes) -> None:
        """Add to the end."""
        ...

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes."""
        ...

    def rewrite(self) -> Rewrite:
        """Begin the next content. An unfinished earlier one is abandoned."""
        ...


class Journal:
    """Writes transactions to a `JournalFile`."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self._size = 0
        self._compact_at_bytes = 0
        self._has_torn_tail = False
        self._compaction: _Compaction | None = None

    def recover(self, now_ms: int, tree: ZnodeTree | None = None) -> ZnodeTree:
        """Restore the tree as of the last whole transaction, without the ephemerals of sessions
        that ended with their process. `tree` has the nodes that exist before any transaction.

        Raises:
            JournalCorrupt: the snapshot or a frame that is not the last one is damaged.
        """
        data = self._file.read()
        tree = tree or ZnodeTree()
        if data:
            valid_bytes = _load(data, tree)
            if valid_bytes < len(data):
                _log.warning(
                    "Cut %d bytes of a torn write off the embedded store", len(data) - valid_bytes
                )
        orphans = [Delete(path) for path in tree.orphans()]
        if orphans:
            tree.apply(Transaction(tree.zxid + 1, now_ms, 0, orphans))
        self._compact(tree, whole=True)
        return tree

    def append(self, transactions: Sequence[Transaction], tree: ZnodeTree) -> None:
        """Make transactions durable, in one write. `tree` includes them already. When the file has
        doubled, this and the next appends each write a slice of a snapshot of `tree`, which then
        replaces the file.

        Raises:
            OSError: nothing was added.
        """
        data = _frame(_encode_transactions(transactions))
        if self._has_torn_tail:
            self._file.truncate(self._size)
        self._has_torn_tail = True
        try:
            self._file.append(data)
        except OSError:
            with suppress(OSError):
                # A refused write must not exist after a restart. If this fails too, the next append
                # truncates the file.
                self._file.truncate(self._size)
                self._has_torn_tail = False
            raise
        self._has_torn_tail = False
        self._size += len(data)
        if self._compaction is not None:
            self._compaction.add_frame(data)
        elif self._size < self._compact_at_bytes:
            return
        try:
            self._compact(tree, whole=False)
        except OSError as error:
            # The transactions are durable in the present file, which only continues to grow.
            _log.warning("Could not compact the embedded store: %s", error)
            self._compact_at_bytes = self._size + _GROWTH_BYTES_MIN

    def _compact(self, tree: ZnodeTree, *, whole: bool) -> None:
        """Write the next slice of a snapshot, or all of it. Raises OSError, and abandons it."""
        compaction = self._compaction or _Compaction(tree, self._file.rewrite())
        self._compaction = None
        try:
            size = compaction.step()
            while whole and not size:
                size = compaction.step()
        except OSError:
            compaction.abandon()
            raise
        if not size:
            self._compaction = compaction
            return
        self._size = size
        self._compact_at_bytes = size + max(size, _GROWTH_BYTES_MIN)


class _Compaction:
    """A snapshot of the tree while it is written to the file, and the frames appended since it was
    taken.
    """

    def __init__(self, tree: ZnodeTree, file: Rewrite) -> None:
        self._file = file
        self._nodes = iter(tree.nodes.copy().items())  # they are immutable
        self._acls: dict[AccessList, int] = {}
        self._frames = bytearray()
        self._slice_bytes, self._slice_nodes = _SLICE_BYTES, _SLICE_NODES
        self._payload_bytes = self._crc = self._frame_bytes = 0
        self._is_whole = False  # the snapshot is written: frames follow
        fields = {
            "format": _FORMAT,
            "zxid": tree.zxid,
            "last_session_id": tree.last_session_id,
            "sessions": [_encode_op(session)[1:] for session in tree.sessions.values()],
        }
        self._prefix = orjson.dumps(fields)[:-1] + b',"nodes":['

    def add_frame(self, frame: bytes) -> None:
        """Add a frame that was appended after the snapshot was taken. A long frame enlarges the
        next slice, so that the frames stay smaller than the snapshot and can all be written.
        """
        self._frames += frame
        self._slice_bytes = max(_SLICE_BYTES, 2 * len(frame))
        self._slice_nodes = max(_SLICE_NODES, len(frame) // _FRAME_BYTES_PER_NODE)

    def step(self) -> int:
        """Write a slice. Returns the size of the new content once that is in place, else 0."""
        self._is_whole = self._is_whole or self._write_nodes()
        if not self._is_whole:
            return 0
        data = bytes(self._frames[: self._slice_bytes])
        del self._frames[: self._slice_bytes]
        self._file.write(data)
        self._frame_bytes += len(data)
        if self._frames:
            return 0
        self._file.finish(_FRAME.pack(self._payload_bytes, self._crc))
        return _FRAME.size + self._payload_bytes + self._frame_bytes

    def abandon(self) -> None:
        """Discard the snapshot."""
        self._file.abandon()

    def _write_nodes(self) -> bool:
        """Write some nodes. Returns whether the snapshot is whole."""
        rows, data_bytes = [], 0
        for path, node in islice(self._nodes, self._slice_nodes):
            rows.append(self._row(path, node))
            data_bytes += len(node.data or b"")
            if data_bytes >= self._slice_bytes:
                break
        if not self._payload_bytes:
            self._file.write(bytes(_FRAME.size))
        if rows:
            self._write(self._prefix + orjson.dumps(rows)[1:-1])
            self._prefix = b","
        if len(rows) == self._slice_nodes or data_bytes >= self._slice_bytes:
            return False
        self._write(b'],"acls":' + orjson.dumps(list(self._acls)) + b"}")
        return True

    def _row(self, path: str, node: TreeNode) -> tuple[Any, ...]:
        acl = self._acls.setdefault(node.acl, len(self._acls))
        return (
            *(path, _text(node.data), *node.stat),
            *(node.children_created, node.children_zxid, acl, node.acl_version),
        )

    def _write(self, payload: bytes) -> None:
        self._file.write(payload)
        self._payload_bytes += len(payload)
        self._crc = zlib.crc32(payload, self._crc)


def _load(data: bytes, tree: ZnodeTree) -> int:
    """Fill `tree`. Returns the position after the last whole frame."""
    valid_bytes = 0
    for number, (end, payload) in enumerate(_frames(data)):
        try:
            if number == 0:
                _decode_snapshot(payload, tree)
            else:
                for transaction in _decode_transactions(payload):
                    tree.apply(transaction)
        except (ValueError, TypeError, KeyError, IndexError, ZooKeeperError) as error:
            raise JournalCorrupt(
                f"the embedded store is damaged: frame {number} (ending at byte {end}): {error}"
            ) from error
        valid_bytes = end
    if valid_bytes == 0:
        raise JournalCorrupt("the embedded store is damaged: its snapshot cannot be read")
    return valid_bytes


def _frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Whole frames with their end positions, up to a torn tail.

    Raises:
        JournalCorrupt: a bad frame is followed by a good one, so it was not the last write.
    """
    position = 0
    while (frame := _frame_at(data, position)) is not None and frame[2]:
        yield frame[0], frame[1]
        position = frame[0]
    if _has_transactions(data, position):
        raise JournalCorrupt(
            f"the embedded store is damaged: wrong length or CRC at byte {position}, not at its end"
        )


def _has_transactions(data: bytes, damaged_position: int) -> bool:
    """Whether an intact frame of transactions begins after a damaged one.

    The length of a damaged frame may be wrong, so any later byte may begin the next frame. Nothing
    within a payload looks like a frame: JSON has no zero byte, which begins a length below 16 MB.
    """
    payload = data.find(b"[", damaged_position + 1 + _FRAME.size)
    while payload >= 0:
        frame = _frame_at(data, payload - _FRAME.size)
        if frame is not None and frame[2]:
            return True
        payload = data.find(b"[", payload + 1)
    return False


def _frame_at(data: bytes, position: int) -> tuple[int, bytes, bool] | None:
    """(end, payload, CRC is right) of the frame at `position`, if all its bytes are there."""
    start = position + _FRAME.size
    if start > len(data):
        return None
    length, crc = _FRAME.unpack_from(data, position)
    if length == 0 or start + length > len(data):
        return None
    payload = data[start : start + length]
    return start + length, payload, zlib.crc32(payload) == crc


def _frame(payload: bytes) -> bytes:
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def _decode_snapshot(payload: bytes, tree: ZnodeTree) -> None:
    snapshot = orjson.loads(payload)
    if snapshot["format"] not in (1, _FORMAT):
        raise ValueError(f"format {snapshot['format']} is neither 1 nor {_FORMAT}")
    tree.zxid = snapshot["zxid"]
    if snapshot["format"] == 1:
        for path, data, *stat, children_created in snapshot["nodes"]:
            tree.restore(path, TreeNode(_bytes(data), ZnodeStat(*stat), children_created))
        return
    tree.last_session_id = snapshot["last_session_id"]
    for row in snapshot["sessions"]:
        session = OpenSession(row[0], row[1].encode("latin-1"), row[2])
        tree.sessions[session.session_id] = session
    acls = [_decode_acl(rows) for rows in snapshot["acls"]]
    for path, data, *stat, children_created, children_zxid, acl, acl_version in snapshot["nodes"]:
        node = TreeNode(
            *(_bytes(data), ZnodeStat(*stat), children_created, children_zxid),
            *(acls[acl], acl_version),
        )
        tree.restore(path, node)


def _decode_acl(rows: list[list[Any]]) -> AccessList:
    return tuple((perms, scheme, identity) for perms, scheme, identity in rows)


def _encode_transactions(transactions: Sequence[Transaction]) -> bytes:
    rows = [
        (zxid, time_ms, session_id, [_encode_op(op) for op in ops])
        for zxid, time_ms, session_id, ops in transactions
    ]
    return orjson.dumps(rows[0] if len(rows) == 1 else rows)


def _decode_transactions(payload: bytes) -> list[Transaction]:
    rows = orjson.loads(payload)
    if not isinstance(rows[0], list):
        rows = [rows]
    return [
        Transaction(zxid, time_ms, session_id, [_decode_op(op) for op in ops])
        for zxid, time_ms, session_id, ops in rows
    ]


def _encode_op(op: TreeOp) -> tuple[Any, ...]:
    match op:
        case Create():
            return ("create", op.path, _text(op.data), op.mode.value)
        case SetData() | WriteZnode():
            return ("set", op.path, _text(op.data), op.version)
        case Delete():
            return ("delete", op.path, op.version)
        case Check():
            return ("check", op.path, op.version)
        case CreateZnode():
            return ("add", op.path, _text(op.data), op.acl, op.ephemeral)
        case SetAcl():
            return ("acl", op.path, op.acl)
        case OpenSession():
            return ("open", op.session_id, _text(op.password), op.timeout_ms)
        case CloseSession():
            return ("close", op.session_id)


def _decode_op(row: list[Any]) -> TreeOp:
    match row:
        case ["create", path, data, mode]:
            return Create(path, data.encode("latin-1"), CreateMode(mode))
        case ["set", path, data, version]:
            return WriteZnode(path, _bytes(data), version)
        case ["delete", path, version]:
            return Delete(path, version)
        case ["check", path, version]:
            return Check(path, version)
        case ["add", path, data, acl, ephemeral]:
            return CreateZnode(path, _bytes(data), _decode_acl(acl), ephemeral)
        case ["acl", path, acl]:
            return SetAcl(path, _decode_acl(acl))
        case ["open", session_id, password, timeout_ms]:
            return OpenSession(session_id, password.encode("latin-1"), timeout_ms)
        case ["close", session_id]:
            return CloseSession(session_id)
    raise ValueError(f"unknown operation {row!r}")


def _text(data: bytes | None) -> str | None:
    """Bytes as JSON text, one character each; null for None."""
    return None if data is None else data.decode("latin-1")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("latin-1")
