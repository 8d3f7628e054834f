"""A disk in memory that can lose power.

Written data is visible at once, and safe only after an fsync, as on a journaling file system:

- Data: each write or truncate of a file waits until an fsync of that file. A crash keeps, drops or
  tears each waiting one separately, so that holes are zeros, or it drops only the last ones.
- Names: creations, renames and removals wait in one journal, which any fsync commits whole. A
  crash keeps a prefix of it.

A file's time is the machine's at its last write. One bit at a time may be read wrong (`flip`),
until the reading process ends.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kafkapy.storage.filesystem import Buffer, DiskSpace, Entry, File

_SECTOR = 64
"""Bytes that are kept or lost together. A real sector has 512, and larger batches: these batches
are small, and would rarely be torn inside."""
_IN_ORDER = 0.3
"""The share of files whose writes reach the disk in order."""


@dataclass(eq=False)
class _Inode:
    """`data` is the readers' view; a crash leaves `durable` and some of `unsynced_writes`."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    unsynced_writes: list[tuple[int, bytes | None]] = field(default_factory=list)
    modified_ms: int = 0

    @property
    def may_grow_back(self) -> bool:
        """Whether a truncation waits that removed data."""
        end = len(self.durable)
        for position, data in self.unsynced_writes:
            if data is None and position < end:
                return True
            end = max(end, position + len(data or b""))
        return False


@dataclass(frozen=True)
class Flip:
    """A bit that is read wrong: `mask` selects it in the byte at `position`."""

    inode: _Inode
    position: int
    mask: int


class SimFile:
    """An open file. It outlives its name, as on POSIX."""

    def __init__(self, disk: SimFileSystem, inode: _Inode, path: str) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path
        self._open = True

    def _check(self) -> None:
        assert self._open, f"{self._path} is closed"

    def pread(self, size: int, position: int) -> bytes:
        self._check()
        data = self._inode.data[position : position + size]
        flip = self._disk.flip
        if flip is not None and flip.inode is self._inode:
            at = flip.position - position
            if 0 <= at < len(data):
                data[at] ^= flip.mask
        return bytes(data)

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        self._check()
        data = b"".join(buffers)
        _write(self._inode.data, position, data)
        self._inode.modified_ms = self._disk.time_ms()
        self._inode.unsynced_writes.append((position, data))

    def truncate(self, size: int) -> None:
        self._check()
        _truncate(self._inode.data, size)
        self._inode.modified_ms = self._disk.time_ms()
        self._inode.unsynced_writes.append((size, None))

    def size(self) -> int:
        return len(self._inode.data)

    def send(self, target_fd: int, size: int, position: int) -> int:
        raise AssertionError("a simulated connection has no socket")

    def fsync(self) -> None:
        self._check()
        self._inode.durable = bytes(self._inode.data)
        self._inode.unsynced_writes.clear()
        self._disk.commit_names()

    def duplicate(self) -> SimFile:
        self._check()
        return SimFile(self._disk, self._inode, self._path)

    def close(self) -> None:
        self._open = False


def _write(content: bytearray, position: int, data: bytes) -> None:
    if len(content) < position:
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _truncate(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


class SimFileSystem:
    """`storage.filesystem.FileSystem` in memory; `crash(seed)` is a power cut. `time_ms` is the
    machine's clock."""

    def __init__(self, time_ms: Callable[[], int] = lambda: 0) -> None:
        self.time_ms = time_ms
        self._files: dict[str, _Inode] = {}
        self._dirs: set[str] = {"/"}
        self._durable_files: dict[str, _Inode] = {}
        self._durable_dirs: set[str] = {"/"}
        self._journal: list[Callable[[dict[str, _Inode], set[str]], None]] = []
        self._locked: set[str] = set()
        self.flip: Flip | None = None
        self.on_directory_rename: Callable[[str], None] = lambda path: None
        """Called with a directory's path before it is renamed."""

    # names

    def _change(self, step: Callable[[dict[str, _Inode], set[str]], None]) -> None:
        step(self._files, self._dirs)
        self._journal.append(step)

    def commit_names(self) -> None:
        for step in self._journal:
            step(self._durable_files, self._durable_dirs)
        self._journal.clear()

    def make_private(self, path: str) -> None:
        self.open(path, create=True).close()

    def open(self, path: str, create: bool = False) -> SimFile:
        inode = self._files.get(path)
        if inode is None:
            if not create or path.rpartition("/")[0] not in self._dirs:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            made = inode = _Inode(modified_ms=self.time_ms())
            self._change(lambda files, _: files.__setitem__(path, made))
        return SimFile(self, inode, path)

    def list(self, path: str) -> list[Entry]:
        if path not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        prefix = path.rstrip("/") + "/"
        found = [
            Entry(name.removeprefix(prefix), False, len(inode.data), inode.modified_ms)
            for name, inode in self._files.items()
            if name.startswith(prefix) and "/" not in name.removeprefix(prefix)
        ]
        return found + [
            Entry(name.removeprefix(prefix), True, 0, 0)
            for name in sorted(self._dirs)
            if name.startswith(prefix) and name != prefix and "/" not in name.removeprefix(prefix)
        ]

    def stat(self, path: str) -> Entry | None:
        name = path.rpartition("/")[2]
        inode = self._files.get(path)
        if inode is not None:
            return Entry(name, False, len(inode.data), inode.modified_ms)
        return Entry(name, True, 0, 0) if path in self._dirs else None

    def make_dir(self, path: str) -> None:
        parts = path.strip("/").split("/")
        for i in range(len(parts)):
            parent = "/" + "/".join(parts[: i + 1])
            if parent not in self._dirs:
                self._change(lambda _, dirs, name=parent: dirs.add(name))  # type: ignore[misc]

    def rename(self, source: str, target: str) -> None:
        if source not in self._files and source not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        if source in self._dirs:
            self.on_directory_rename(source)

        def step(files: dict[str, _Inode], dirs: set[str]) -> None:
            if source in files:
                files[target] = files.pop(source)
                return
            for name in [n for n in files if n.startswith(source + "/")]:
                files[target + name.removeprefix(source)] = files.pop(name)
            for name in [n for n in dirs if n == source or n.startswith(source + "/")]:
                dirs.discard(name)
                dirs.add(target + name.removeprefix(source))

        self._change(step)

    def remove(self, path: str) -> None:
        if path in self._files:
            self._change(lambda files, _: files.__delitem__(path))

    def remove_tree(self, path: str) -> Iterator[None]:
        def step(files: dict[str, _Inode], dirs: set[str]) -> None:
            for name in [n for n in dirs if n == path or n.startswith(path + "/")]:
                dirs.discard(name)

        for name in [n for n in self._files if n.startswith(path + "/")]:
            self.remove(name)
            yield
        self._change(step)

    def fsync_dir(self, path: str) -> None:
        if path not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self.commit_names()

    def rename_all(self, renames: Sequence[tuple[str, str]]) -> None:
        for source, target in renames:
            self.rename(source, target)

    def fsync_all(self, files: Sequence[File]) -> None:
        for file in files:
            file.fsync()

    def fsync_dirs(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.fsync_dir(path)

    def set_modified(self, path: str, modified_ms: int) -> None:
        self._files[path].modified_ms = modified_ms

    def lock(self, path: str) -> SimFile | None:
        if path in self._locked:
            return None
        self._locked.add(path)
        return _LockFile(self, self.open(path, create=True)._inode, path)

    def unlock(self, path: str) -> None:
        self._locked.discard(path)

    def disk_space(self, path: str) -> DiskSpace:
        return DiskSpace(1 << 40, (1 << 40) - sum(len(i.data) for i in self._files.values()))

    def open_files_limit(self) -> int:
        return 64

    def unsynced_cuts(self, directory: str) -> list[str]:
        """The segments of a log whose truncation a power cut may undo."""
        return [
            path
            for path, inode in self._files.items()
            if path.startswith(f"{directory}/") and path.endswith(".log") and inode.may_grow_back
        ]

    def first_unsynced(self, path: str) -> int:
        """The first position at which a power cut may change a file, or else the file's size."""
        inode = self._files[path]
        return min((position for position, _ in inode.unsynced_writes), default=len(inode.data))

    def durable_content(self, path: str) -> bytes:
        """The bytes of a file that any power cut leaves, empty if the file may be gone."""
        inode = self._durable_files.get(path)
        return b"" if inode is None else inode.durable

    # bits that are read wrong

    def paths(self) -> list[str]:
        """The paths of all files."""
        return list(self._files)

    def content(self, path: str) -> bytes:
        """The bytes of a file, without read errors."""
        return bytes(self._files[path].data)

    def flip_bit(self, path: str, position: int, bit: int) -> Flip:
        """Flip a bit in all later reads of a file."""
        self.flip = Flip(self._files[path], position, 1 << bit)
        return self.flip

    def flip_permanently(self, path: str, position: int, bit: int) -> None:
        """Flip a bit of a file permanently."""
        inode = self._files[path]
        durable = bytearray(inode.durable)
        for content in (inode.data, durable):
            if position < len(content):
                content[position] ^= 1 << bit
        inode.durable = bytes(durable)

    # the process ends, the power is cut

    def process_ended(self) -> None:
        """Release the locks of a killed process; the system keeps its writes."""
        self._locked.clear()
        self.flip = None

    def crash(self, seed: int) -> None:
        """Lose unsynced data: the same seed loses the same data."""
        chance = random.Random(seed)
        for step in self._journal[: chance.randint(0, len(self._journal))]:
            step(self._durable_files, self._durable_dirs)
        for _, inode in sorted(self._durable_files.items()):
            inode.data = _after_crash(inode, chance)
            inode.durable = bytes(inode.data)
            inode.unsynced_writes.clear()
        self._files = dict(self._durable_files)
        self._dirs = set(self._durable_dirs)
        self._journal.clear()
        self._locked.clear()
        self.flip = None


def _after_crash(inode: _Inode, chance: random.Random) -> bytearray:
    content = bytearray(inode.durable)
    unsynced_writes, fates = inode.unsynced_writes, ["kept", "dropped", "torn"]
    if chance.random() < _IN_ORDER:
        unsynced_writes, fates = (
            unsynced_writes[: chance.randint(0, len(unsynced_writes))],
            ["kept"],
        )
    for position, data in unsynced_writes:
        fate = chance.choice(fates)
        if fate == "dropped":
            continue
        if data is None:
            _truncate(content, position)
        elif fate == "kept":
            _write(content, position, data)
        else:
            for start in range(0, len(data), _SECTOR):
                if chance.random() < 0.5:
                    _write(content, position + start, data[start : start + _SECTOR])
    return content


class _LockFile(SimFile):
    """An open lock file, which releases its lock when it is closed."""

    def close(self) -> None:
        super().close()
        self._disk.unlock(self._path)
