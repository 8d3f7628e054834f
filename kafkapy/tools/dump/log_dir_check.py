"""`dump-log --verify`: checks whole directories for faults that Kafka would not accept."""

from __future__ import annotations

from collections.abc import Iterator

from kafkapy.storage.filesystem import FileSystem, ReadOnlyFileSystem
from kafkapy.storage.verify import Problem, unreadable, verify_log_dir, verify_partition


def problems(path: str, fs: FileSystem | None = None) -> Iterator[Problem]:
    """Faults of a log directory, or of a partition's directory in one.

    The broker must be stopped cleanly, because a running broker has open index files. An unreadable
    file is reported as a problem.
    """
    fs, path = fs or ReadOnlyFileSystem(), path.rstrip("/") or "/"
    try:
        if any(entry.is_dir for entry in fs.list(path)):
            yield from verify_log_dir(fs, path)
        else:
            yield from verify_partition(fs, path).problems
    except OSError as error:
        yield unreadable(error, path)
