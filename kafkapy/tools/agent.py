"""The agent: sends lines of files to a topic, each at least once.

A round reads some lines of every file, sends them, waits until all are acknowledged, and only then
saves its positions. So a crash loses nothing, but lines sent since the last save are sent again.
The agent reads as fast as the brokers accept lines.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol

from confluent_kafka import KafkaException

from kafkapy.client.librdkafka import producer_config
from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.tools.file_tail import (
    Cursor,
    FileTail,
    FileVersion,
    Identity,
    NotAFile,
    cursor_from_json,
    cursor_to_json,
    find_renamed,
    is_plain_file,
    version_of,
)
from kafkapy.tools.librdkafka_client import Reporter, ToolProducer, make_client

ROUND_BYTES: Final = 1 << 20
FINISHED_FILES_MAX: Final = 1000
"""The number of renamed files whose positions are remembered."""
ROTATE_WAIT_S: Final = 5.0
"""The time for which a rotated file stays open after its last new line, as in Fluent Bit."""
_QUEUE_FULL_WAIT_S: Final = 0.1
_NO_TIMEOUT: Final = "0"  # librdkafka's message.timeout.ms: brokers may be down for a long time


class AgentError(KafkapyError):
    """A line cannot be delivered, and a retry would not help; or the state cannot be saved."""


class LineSink(Protocol):
    """The destination of lines."""

    def send(self, path: Path, value: bytes, offset: int) -> None:
        """Send one line. May wait for room in the queue. A stop request ends the wait: then the
        line is dropped, and is never acknowledged.
        """

    def acknowledged(self) -> bool:
        """Wait briefly. Returns whether every line was acknowledged. Raises AgentError."""


class TopicSink:
    """Sends lines to a topic. The key is the path, so a file's lines stay in order in one
    partition.
    """

    def __init__(
        self,
        topic: str,
        properties: Mapping[str, str],
        warn: Callable[[str], None],
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Raises:
            ConfigError: librdkafka refuses a property.
        """
        self._topic = topic
        self._is_stopped = is_stopped
        self._is_aborted = False
        self._failures: list[str] = []
        config = {"linger.ms": "20", **producer_config(properties)}
        if "delivery.timeout.ms" not in properties:
            config["message.timeout.ms"] = _NO_TIMEOUT
        self._producer: Any = make_client(
            ToolProducer, config, Reporter(warn, properties, retries_authentication=True)
        )

    def send(self, path: Path, value: bytes, offset: int) -> None:
        """Queue a line with the headers `file` and `offset`; wait while the queue is full.

        Raises:
            AgentError: it cannot be sent, for example because the topic does not exist.
            ApiError: a fatal error.
        """
        name = str(path).encode(errors="surrogateescape")  # file names need not be UTF-8
        headers = [("file", name), ("offset", str(offset).encode())]
        while not self._is_aborted:
            try:
                self._producer.produce(
                    self._topic, value, name, headers=headers, on_delivery=self._delivered
                )
                return
            except BufferError:
                self._producer.poll(_QUEUE_FULL_WAIT_S)
                self._is_aborted = self._is_stopped()
            except KafkaException as error:
                self._producer.poll(0)  # raises a fatal error, which has the reason
                raise AgentError(f"Topic {self._topic}: {error.args[0].str()}") from error

    def acknowledged(self) -> bool:
        """Wait for at most half a second. Returns whether the queue is empty."""
        queued: int = self._producer.flush(0.5)
        if self._failures:
            raise AgentError(f"Topic {self._topic}: {self._failures[0]}")
        return queued == 0 and not self._is_aborted

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failures.append(error.str())


class State:
    """The positions in the files, saved in a file that is replaced atomically."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            ConfigError: the file cannot be read, or is not the state of an agent.
        """
        self._path = path
        self.cursors: dict[str, Cursor] = {}
        self.finished_files: dict[tuple[int, int], Cursor] = {}
        self.is_new = False
        try:
            data = json.loads(path.read_bytes())
            self.cursors = {p: cursor_from_json(c) for p, c in data["files"].items()}
            finished_files = map(cursor_from_json, data["done"])
            self.finished_files = {cursor.identity: cursor for cursor in finished_files}
        except FileNotFoundError:
            self.is_new = True
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise ConfigError(f"{path} is no state of an agent: {error}") from error
        except OSError as error:
            raise ConfigError(f"Cannot read {path}: {error.strerror}") from error

    def remember(self, cursor: Cursor) -> None:
        """Keep the position in a renamed file, and drop the oldest beyond `FINISHED_FILES_MAX`."""
        self.finished_files[cursor.identity] = cursor
        while len(self.finished_files) > FINISHED_FILES_MAX:
            del self.finished_files[next(iter(self.finished_files))]

    def save(self) -> None:
        """Save the positions atomically.

        Raises:
            AgentError: the file cannot be written.
        """
        data = {
            "files": {path: cursor_to_json(cursor) for path, cursor in self.cursors.items()},
            "done": [cursor_to_json(cursor) for cursor in self.finished_files.values()],
        }
        partial = self._path.with_name(self._path.name + ".part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("w") as file:
                json.dump(data, file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._path)
        except OSError as error:
            raise AgentError(f"Cannot write {self._path}: {error.strerror}") from error


class Stop:
    """A stop flag that a signal handler may set. `threading.Event.set` would deadlock if the signal
    interrupted code that holds the event's lock."""

    def __init__(self) -> None:
        self._items: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Set the flag for good."""
        self._items.put(None)

    def is_set(self) -> bool:
        return not self._items.empty()

    def wait(self, limit_s: float) -> None:
        """Wait until the flag is set, at most `limit_s`."""
        with contextlib.suppress(Empty):
            self._items.get(timeout=limit_s)
            self.set()


@dataclass
class _Rotated:
    """A file that lost its name to another one, or was deleted, and may still get lines."""

    name: str
    tail: FileTail
    closing_s: float


class Agent:
    """Follows the files that the patterns match, now and later."""

    def __init__(
        self,
        patterns: Sequence[str],
        state: State,
        sink: LineSink,
        warn: Callable[[str], None],
        *,
        from_end: bool = False,
        monotonic_s: Callable[[], float] = time.monotonic,
        open_max: int | None = None,
    ) -> None:
        """`open_max` is the number of files that may be open, by default half of the limit of this
        process. The rest is for connections to brokers.
        """
        self.sent = 0
        self._patterns = patterns
        self._state = state
        self._sink = sink
        self._warn = warn
        # Applies only to files that exist at the very first start.
        self._from_end = from_end and state.is_new
        self._monotonic_s = monotonic_s
        self._tails: dict[str, FileTail] = {}
        self._rotated: list[_Rotated] = []
        self._open_max = open_max or _open_files_max()
        self._has_unopened = False
        # Versions of closed files that had no new lines.
        self._unchanged: dict[str, FileVersion] = {}
        # Names that were reported to `warn`, so that each is reported once.
        self._links: set[str] = set()
        self._unreadable: set[str] = set()
        # Compressed files that were reported. They are renamed, and must be reported once.
        self._compressed: set[Identity] = set()

    def run(self, stop: Stop, *, poll_s: float = 0.5, once: bool = False) -> None:
        """Run rounds until `stop` is set; with `once`, until there are no new lines.

        With `once`, files count as finished: a last line without a line end is sent too.

        Raises:
            AgentError: a line cannot be delivered.
        """
        while not stop.is_set():
            lines = self.round()
            if once and not lines:
                lines = self.round(finished=True)
            while not self._sink.acknowledged():
                if stop.is_set():
                    return  # positions are not saved: the next run sends these lines again
            if lines or self._state.cursors != self._cursors():
                self._save()
            self.sent += lines
            if lines or (once and self._has_unopened):
                continue
            if once:
                return
            stop.wait(poll_s)

    def round(self, *, finished: bool = False) -> int:
        """Send some lines of every file. Returns their number. Switches to new files under old
        names.

        With `finished`, a last line without a line end is sent too.
        """
        self._set_rotated_aside()
        self._open_new(finished)
        if self._from_end:
            # The next start continues here, also if no line of this one is acknowledged.
            self._save()
            self._from_end = False
        # Rotated files first: their lines are older.
        lines = sum(self._advance_rotated(rotated, finished) for rotated in list(self._rotated))
        return lines + sum(
            self._advance(name, tail, finished) for name, tail in list(self._tails.items())
        )

    def close(self) -> None:
        """Close the files."""
        for tail in self._open_tails():
            tail.close()
        self._tails.clear()
        self._rotated.clear()

    def _open_tails(self) -> list[FileTail]:
        return [*self._tails.values(), *(rotated.tail for rotated in self._rotated)]

    def _advance(self, name: str, tail: FileTail, finished: bool) -> int:
        if tail.reset_if_truncated():
            self._warn(f"{name} was truncated; reading it from its beginning")
        if self._is_compressed(name, tail):  # it was empty before
            tail.close()
            del self._tails[name]
            return 0
        return self._send(name, tail, ended=finished)

    def _advance_rotated(self, rotated: _Rotated, finished: bool) -> int:
        """Send late lines of a rotated file. Close it some time after the last one."""
        now_s, tail = self._monotonic_s(), rotated.tail
        is_over = finished or now_s >= rotated.closing_s
        lines = self._send(rotated.name, tail, ended=False)
        if not lines and is_over:
            lines = self._send(rotated.name, tail, ended=True)
        if lines:
            rotated.closing_s = now_s + ROTATE_WAIT_S
        elif is_over:
            tail.close()
            self._rotated.remove(rotated)
        if lines and not tail.is_deleted():
            self._state.remember(tail.cursor)
        return lines

    def _send(self, name: str, tail: FileTail, *, ended: bool) -> int:
        lines = tail.read(ROUND_BYTES, ended=ended)
        for line in lines:
            self._sink.send(Path(name), line.value, line.offset)
        return len(lines)

    def _set_rotated_aside(self) -> None:
        """Free the names of files that were renamed or deleted, and read to their end so far. Their
        writers may have them open, and add lines until they open the new file."""
        for name, tail in list(self._tails.items()):
            if tail.idle_version is not None and (tail.is_replaced() or tail.is_deleted()):
                if not tail.is_deleted():
                    self._state.remember(tail.cursor)
                del self._tails[name]
                self._state.cursors.pop(name, None)
                closing_s = self._monotonic_s() + ROTATE_WAIT_S
                self._rotated.append(_Rotated(name, tail, closing_s))

    def _open_new(self, finished: bool) -> None:
        """Open the files that are new, or have changed since they were closed. If too many are
        open, close those without new lines. Files for which there is no room wait for a later
        round.
        """
        self._has_unopened = False
        names = self._matching()
        unchanged = self._unchanged
        self._unchanged = {name: unchanged[name] for name in names if name in unchanged}
        open_files = self._open_files()
        for name in names:
            if name in self._tails or self._is_unchanged(name, finished):
                continue
            if len(open_files) >= self._open_max:
                self._close_idle()
                open_files = self._open_files()
                self._has_unopened = len(open_files) >= self._open_max
                if self._has_unopened:
                    return
            self._open(name, open_files)

    def _is_unchanged(self, name: str, finished: bool) -> bool:
        version, cursor = self._unchanged.get(name), self._state.cursors.get(name)
        if version is None:
            return False
        if finished and cursor is not None and cursor.offset < version.size:
            return False  # its last line, which has no line end, is sent now
        try:
            return version_of(os.lstat(name)) == version
        except OSError:
            return False

    def _close_idle(self) -> None:
        for name, tail in list(self._tails.items()):
            if tail.idle_version is not None:
                self._unchanged[name] = tail.idle_version
                self._state.cursors[name] = tail.cursor
                tail.close()
                del self._tails[name]

    def _open_files(self) -> set[Identity]:
        return {tail.cursor.identity for tail in self._open_tails()}

    def _open(self, name: str, open_files: set[Identity]) -> None:
        try:
            version = version_of(os.lstat(name))
            tail = self._tail_of(name, open_files)
        except (FileNotFoundError, NotAFile):
            return  # it was removed or replaced meanwhile
        except OSError as error:
            if name not in self._unreadable:
                self._unreadable.add(name)
                self._warn(f"{name} cannot be read ({error.strerror}); the others are followed")
            return
        self._unreadable.discard(name)
        if tail is None:
            self._unchanged[name] = version
        else:
            open_files.add(tail.cursor.identity)
            self._tails[name] = tail

    def _tail_of(self, name: str, open_files: set[Identity]) -> FileTail | None:
        """The file with this name, at its position. None if it is open under another name, or was
        read to its end under another name.

        A rotation gives many names another file at once, so a position belongs to the file.
        """
        path, status = Path(name), os.lstat(name)
        identity = (status.st_dev, status.st_ino)
        own = self._state.cursors.get(name)
        if own is not None and own.identity != identity:
            del self._state.cursors[name]
            if own.identity not in open_files:
                renamed = find_renamed(path, own)
                if renamed is not None:
                    renamed.path = path  # so that `is_replaced` compares it with the new file
                    return renamed
                if own.identity not in self._state.finished_files:
                    self._state.remember(own)
        if identity in open_files:
            return None
        is_same = own is not None and own.identity == identity
        saved = own if is_same else self._saved_cursor(identity)
        tail = FileTail(path, saved)
        if self._is_compressed(name, tail):
            tail.close()
            return None
        if tail.cursor == saved:
            if not is_same and status.st_size <= saved.offset:
                tail.close()
                return None  # no writer that still has it open has added lines
            self._state.finished_files.pop(identity, None)
        elif own is not None and own.identity not in open_files:
            change = "was truncated" if is_same else "was replaced"
            self._warn(
                f"{name} {change} while the agent did not have it open; reading it from its"
                " beginning"
            )
        elif own is None and self._from_end:
            tail.skip_to_end()
        return tail

    def _is_compressed(self, name: str, tail: FileTail) -> bool:
        """Whether a new file is one that was compressed after its rotation: it has no lines."""
        compression = tail.compression()
        if compression is not None and tail.cursor.identity not in self._compressed:
            self._compressed.add(tail.cursor.identity)
            self._warn(f"{name} is compressed with {compression}; it is not sent")
        return compression is not None

    def _saved_cursor(self, identity: Identity) -> Cursor | None:
        """The position in the file with this identity, which may be a deleted file's."""
        finished = self._state.finished_files.get(identity)
        if finished is not None:
            return finished
        found = (cursor for cursor in self._state.cursors.values() if cursor.identity == identity)
        return max(found, key=lambda cursor: cursor.offset, default=None)

    def _matching(self) -> list[str]:
        """Names of matching files, in order. A pattern without a match may match later."""
        # A shell's wildcards give names with brackets, which would be patterns here.
        patterns = (glob.escape(p) if os.path.lexists(p) else p for p in self._patterns)
        names = {name for pattern in patterns for name in glob.glob(_resolve_links(pattern))}
        for name in sorted(names - self._links):
            if not is_plain_file(name) and os.path.isfile(name):
                self._links.add(name)
                self._warn(f"{name} is a symbolic link, or below one; it is not followed")
        return sorted(filter(is_plain_file, names))

    def _cursors(self) -> dict[str, Cursor]:
        return {
            **{n: c for n, c in self._state.cursors.items() if n not in self._tails},
            **{name: tail.cursor for name, tail in self._tails.items()},
        }

    def _save(self) -> None:
        self._state.cursors = self._cursors()
        self._state.save()


def _open_files_max() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(1, soft // 2)


def _resolve_links(pattern: str) -> str:
    """The pattern with the directories before its first wildcard, or before its name, resolved:
    the user named them, so they may be links. The rest must not contain links.
    """
    parts = Path(pattern).parts
    fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    directory = os.path.realpath(os.path.join(*parts[:fixed])) if fixed > 0 else os.getcwd()
    return os.path.join(glob.escape(os.path.realpath(directory)), *parts[max(fixed, 0) :])
