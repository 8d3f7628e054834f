"""`kafkapy zookeeper export|import`: writes a tree of znodes to a file, or from a file to another
ZooKeeper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kafkapy.common.errors import ConfigError
from kafkapy.tools.zookeeper.shell import connect
from kafkapy.tools.zookeeper.stored_tree import process_on, read_stored_tree
from kafkapy.tools.zookeeper.tree_reader import TreeError, read_tree
from kafkapy.tools.zookeeper.tree_writer import VERSION_MAX, TreeWriter, make_root
from kafkapy.tools.zookeeper.znode_file import TreeSnapshot, digest, read_znodes, write_znodes

_BROKER: Final = re.compile(r"(?:^|/)brokers/ids/([^/]+)$")
_PATHS_SHOWN: Final = 3

Warn = Callable[[str], None]


class TransferResult(NamedTuple):
    """Counts of a transfer, and the SHA-256 of the znodes' lines in the file."""

    znodes: int
    ephemerals: int
    sha256: str


def export_from_zookeeper(
    hosts: str, properties: Mapping[str, str], file: Path, force: bool, warn: Warn
) -> TransferResult:
    """Write the tree at `host:port,.../chroot` to a file; `properties` are `zookeeper.*` keys.

    Raises:
        TreeError: brokers are registered and `force` is not given, or a node cannot be read.
        ZnodeFileError: the file exists already, or cannot be written.
        ApiError: no server answers.
        ConfigError: `hosts` or a property is malformed.
    """
    with _session(hosts, properties) as client:
        tree = read_tree(client)
    return _export(tree, hosts, file, force, warn)


def export_from_directory(directory: Path, file: Path, force: bool, warn: Warn) -> TransferResult:
    """Write the tree in a data directory to a file.

    Raises:
        TreeError: as `export_from_zookeeper`.
        ConfigError: a server runs on the directory and `force` is not given, or the directory has
            no znodes.
        JournalCorrupt: the znodes' file is damaged.
        ZnodeFileError: as `export_from_zookeeper`.
    """
    pid = process_on(directory)
    if pid is not None:
        warning = f"A server runs on {directory}, with pid {pid}, and may change the znodes"
        if not force:
            raise ConfigError(f"{warning}: stop it, or export with --force")
        warn(f"WARNING: {warning}")
    return _export(read_stored_tree(directory), str(directory), file, force, warn)


def import_to_zookeeper(
    file: Path,
    hosts: str,
    properties: Mapping[str, str],
    *,
    overwrite: bool,
    force: bool,
    warn: Warn,
) -> TransferResult:
    """Write the tree of a file to `host:port,.../chroot`, and verify it.

    With `overwrite`, the target may have znodes: those of the file replace them, others stay.

    Raises:
        ZnodeFileError: the file cannot be read, is damaged or incomplete.
        TreeError: the target is not empty, brokers are registered there and `force` is not given,
            the server refuses a node, or a node differs from the file afterwards.
        ApiError: no server answers.
        ConfigError: `hosts` or a property is malformed.
    """
    rows = read_znodes(file)
    with _session(hosts, properties) as client:
        make_root(client)
        target_tree = read_tree(client)
        if not overwrite and len(target_tree.rows) + len(target_tree.ephemerals) > 1:
            raise TreeError(
                f"{hosts} is not empty: name another chroot, or --overwrite the znodes of the file"
            )
        _check_brokers(target_tree, hosts, force, warn)
        writer = TreeWriter(client, rows, {row.path: row for row in target_tree.rows})
        writer.write()
    if unrestored := writer.unrestored_versions():
        warn(
            f"WARNING: versions above {VERSION_MAX} are not kept:"
            f" {', '.join(unrestored[:_PATHS_SHOWN])}"
            + (
                f" and {len(unrestored) - _PATHS_SHOWN} more"
                if len(unrestored) > _PATHS_SHOWN
                else ""
            )
        )
    return TransferResult(len(rows), 0, digest(rows))


def _export(tree: TreeSnapshot, source: str, file: Path, force: bool, warn: Warn) -> TransferResult:
    _check_brokers(tree, source, force, warn)
    sha256 = write_znodes(file, tree.rows, source)
    return TransferResult(len(tree.rows), len(tree.ephemerals), sha256)


def _check_brokers(tree: TreeSnapshot, source: str, force: bool, warn: Warn) -> None:
    found = [match[1] for path in tree.ephemerals if (match := _BROKER.search(path))]
    if not found:
        return
    warning = f"Brokers are registered at {source}, and may change the znodes: {', '.join(found)}"
    if not force:
        raise TreeError(f"{warning}. Stop them, or use --force")
    warn(f"WARNING: {warning}")


@contextmanager
def _session(hosts: str, properties: Mapping[str, str]) -> Iterator[KazooClient]:
    client = connect(hosts, properties)
    try:
        yield client
    except KazooException as error:
        reason = str(error) or type(error).__name__
        raise TreeError(
            f"ZooKeeper at {hosts} refused, or the connection broke: {reason}"
        ) from error
    finally:
        client.stop()
        client.close()
