"""The tree of znodes in a data directory, read without its server.

The directory is that of `kafkapy zookeeper start`, or the first log directory of a broker with the
embedded store. Nothing in it is changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.common.system import SystemClock
from kafkapy.storage.embedded_store_file import EMBEDDED_STORE_FILE
from kafkapy.tools.local.broker_processes import broker_of
from kafkapy.tools.zookeeper.process import server_of
from kafkapy.tools.zookeeper.znode_file import TreeSnapshot, ZnodeRow
from kafkapy.zk.embedded.journal import Journal
from kafkapy.zk.embedded.znode_tree import ZnodeTree
from kafkapy.zk.service.settings import DATA_FILE

_SYSTEM: Final = "/zookeeper"


class _ReadOnly:
    """A read-only `JournalFile`, which ignores writes. It is also its own rewritten file."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        return self._data

    def append(self, data: bytes) -> None:
        """Nothing is written."""

    def truncate(self, size: int) -> None:
        """Nothing is written."""

    def rewrite(self) -> _ReadOnly:
        return self

    def write(self, data: bytes) -> None:
        """Nothing is written."""

    def finish(self, head: bytes) -> None:
        """Nothing is written."""

    def abandon(self) -> None:
        """Nothing was written."""


def read_stored_tree(directory: Path) -> TreeSnapshot:
    """The znodes in a directory, as of the last transaction in its journal.

    Raises:
        ConfigError: the directory has no znodes, or their file cannot be read.
        JournalCorrupt: the file is damaged.
    """
    try:
        found = [name for name in (DATA_FILE, EMBEDDED_STORE_FILE) if (directory / name).exists()]
    except OSError as error:
        raise ConfigError(f"Cannot read {directory}: {error.strerror}") from error
    if not found:
        raise ConfigError(
            f"There is neither {DATA_FILE} nor {EMBEDDED_STORE_FILE} in {directory}: name the data"
            " directory of `kafkapy zookeeper start`, or the first log directory of a broker"
            " without zookeeper.connect"
        )
    file = directory / found[0]
    try:
        journal = Journal(_ReadOnly(file.read_bytes()))
    except OSError as error:
        raise ConfigError(f"Cannot read {file}: {error.strerror}") from error
    tree = journal.recover(SystemClock().time_ms())
    return _rows(tree, is_embedded=found[0] == EMBEDDED_STORE_FILE)


def process_on(directory: Path) -> int | None:
    """The pid of the ZooKeeper or the broker that runs on a directory; None if none runs."""
    return server_of(str(directory)) or broker_of([str(directory)])


def _rows(tree: ZnodeTree, is_embedded: bool) -> TreeSnapshot:
    found = TreeSnapshot([], [])
    for path, node in sorted(tree.nodes.items()):
        if path == _SYSTEM or path.startswith(f"{_SYSTEM}/"):
            continue
        if node.stat.ephemeral_owner:
            found.ephemerals.append(path)
            continue
        # The embedded store has no null. Kafka's empty nodes are null in ZooKeeper.
        data = (node.data or None) if is_embedded else node.data
        row = ZnodeRow(path, data, node.stat.version, node.children_created, node.acl)
        found.rows.append(row)
    return found
