"""An in-memory ZooKeeper for tests, which call it directly: no event loop is needed."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from kafkapy.zk.embedded.journal import Journal
from kafkapy.zk.embedded.memory import MemoryServer, MemoryZooKeeper
from kafkapy.zk.zookeeper import Op, OpResult, ZooKeeperError
from tests.harness.cores.ports import ManualClock

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    coroutine.close()
    raise AssertionError("the coroutine waits for something")


class BytesRewrite:
    """The next content of a `BytesFile`, which fails when that does."""

    def __init__(self, file: BytesFile) -> None:
        self._file = file
        self.data = b""

    def write(self, data: bytes) -> None:
        if self._file.fail or self._file.is_full:
            raise OSError(28, "No space left on device")
        self.data += data

    def finish(self, head: bytes) -> None:
        self.write(b"")
        self._file.data = head + self.data[len(head) :]

    def abandon(self) -> None:
        self.data = b""


class BytesFile:
    """A `JournalFile` in memory with faults: it can fail, have no room for another content, or
    tear its next append.
    """

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self.fail = False
        self.is_full = False
        self.tear_at: int | None = None

    def read(self) -> bytes:
        return self.data

    def append(self, data: bytes) -> None:
        if self.tear_at is not None:
            self.data += data[: self.tear_at]
            self.tear_at = None
            raise OSError(28, "No space left on device")
        if self.fail:
            raise OSError(28, "No space left on device")
        self.data += data

    def truncate(self, size: int) -> None:
        self.data = self.data[:size]

    def rewrite(self) -> BytesRewrite:
        return BytesRewrite(self)


def server(file: BytesFile | None = None) -> MemoryServer:
    """A server, durable in `file` if there is one."""
    return MemoryServer(ManualClock(), None if file is None else Journal(file))


class AnswerLosingZooKeeper(MemoryZooKeeper):
    """A session that loses the answer to the next write of `lost_path`, and repeats the write."""

    lost_path = ""

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        if self.lost_path in [op.path for op in ops]:
            self.lost_path = ""
            with contextlib.suppress(ZooKeeperError):
                await super().multi(ops)
        return await super().multi(ops)
