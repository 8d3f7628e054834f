"""Creates and locks log directories, and checks their owner (meta.properties)."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.common.errors import ConfigError
from kafkapy.storage import log_names
from kafkapy.storage.checkpoints import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kafkapy.storage.filesystem import File, FileSystem


class LogDirLocks:
    """The `.lock` files that this process holds. The system releases them with the process."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._held: dict[str, File] = {}

    def acquire(self, log_dir: str) -> None:
        """Create the directory if needed, and lock it.

        Raises:
            ConfigError: another broker has it; names the directory.
            OSError: it cannot be created or written.
        """
        self._fs.make_dir(log_dir)
        lock = self._fs.lock(f"{log_dir}/{log_names.LOCK_FILE}")
        if lock is None:
            raise ConfigError(
                f"Log directory {log_dir} is in use by another broker: it holds the lock "
                f"{log_dir}/{log_names.LOCK_FILE}. Stop it, or give this broker its own log.dirs."
            )
        self._held[log_dir] = lock

    def release(self, log_dir: str) -> None:
        lock = self._held.pop(log_dir, None)
        if lock is not None:
            lock.close()

    def release_all(self) -> None:
        for log_dir in list(self._held):
            self.release(log_dir)


def read_identity(fs: FileSystem, log_dirs: Sequence[str]) -> MetaProperties:
    """The broker and cluster of `log_dirs`; None for values that no directory has.

    Raises:
        ConfigError: the directories disagree, or one is not a ZooKeeper-mode broker's.
        OSError: one cannot be read.
    """
    broker_id: int | None = None
    cluster_id: str | None = None
    for log_dir in log_dirs:
        found = read_meta_properties(fs, f"{log_dir}/{log_names.META_PROPERTIES}")
        if found is None:
            continue
        for name, known, found_value in (
            ("broker.id", broker_id, found.broker_id),
            ("cluster.id", cluster_id, found.cluster_id),
        ):
            if known is not None and found_value is not None and known != found_value:
                raise ConfigError(
                    f"{log_dir}/{log_names.META_PROPERTIES} says {name}={found_value}, another log "
                    f"directory says {known}: they belong to different brokers or clusters"
                )
        broker_id = found.broker_id if found.broker_id is not None else broker_id
        cluster_id = found.cluster_id if found.cluster_id is not None else cluster_id
    return MetaProperties(broker_id, cluster_id)


def claim(
    fs: FileSystem, log_dirs: Sequence[str], broker_id: int, cluster_id: str, now_ms: int
) -> None:
    """Write missing or incomplete `meta.properties` files.

    Raises:
        ConfigError: a directory belongs to another broker or cluster.
        OSError: one cannot be written.
    """
    wanted = MetaProperties(broker_id, cluster_id)
    known = read_identity(fs, log_dirs)
    if known.broker_id not in (None, broker_id):
        raise ConfigError(
            f"Configured broker.id {broker_id} does not match the stored broker.id "
            f"{known.broker_id} in {log_names.META_PROPERTIES} of {', '.join(log_dirs)}"
        )
    if known.cluster_id not in (None, cluster_id):
        raise ConfigError(
            f"The cluster id {cluster_id} does not match the stored cluster id "
            f"{known.cluster_id} in {log_names.META_PROPERTIES} of {', '.join(log_dirs)}: the "
            "broker is trying to join the wrong cluster"
        )
    for log_dir in log_dirs:
        path = f"{log_dir}/{log_names.META_PROPERTIES}"
        if read_meta_properties(fs, path) != wanted:
            write_meta_properties(fs, path, broker_id, cluster_id, now_ms)
