"""A Python process that has imported the modules of Spark's workers, and forks into workers.

Before a first batch, Spark starts five Python processes one after the other. Each imports pyspark;
most also import pyarrow, numpy and kafkapy; tasks also import numba. `kafkapy spark-submit` starts
the fork server while the JVM starts. The program that Spark runs as its Python
(`fork_server_launcher`) passes its streams, arguments and environment to the fork server, and a
forked child becomes the worker. The fork server has no threads, because a child would lack them. It
ends with its lifeline, a pipe that only the JVM holds, or the driver that called
`prepare_local_workers`.
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from kafkapy.common.system import raise_open_files_limit
from kafkapy.spark.workers.fork_server_launcher import (
    LENGTH_BYTES,
    READY,
    REFUSED,
    SOCKET_VARIABLE,
    TAKEN,
    with_short_name,
)

MODULES: Final = (
    "pyspark.worker",
    "pyspark.daemon",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "kafkapy.protocol.decoder_source",  # with the codecs of the first request
    "kafkapy.protocol.encoder_source",
    "kafkapy.spark.source.datasource",
    "kafkapy.spark.source.segments_source",
    "kafkapy.spark.source.batch_reader",
    "kafkapy.spark.source.stream_reader",
    "kafkapy.spark.source.arrow",
    "kafkapy.spark.sink.writer",
    "kafkapy.spark.sink.row_writer",
    "kafkapy.record.columns",
    "numpy.ma",  # pyarrow imports it for arrays of numpy
)
"""The modules that workers import, before or in their first task.

They do not include the worker that pushes filters down, because `batch_reader` recognises that
worker by the loaded module.
"""

REQUEST_LIMIT_S: Final = 20.0
_STREAMS: Final = 3
SET_HERE: Final = {
    "PYTHONHASHSEED": "0",  # as bin/spark-submit
    "PYTHONUNBUFFERED": "YES",  # as the JVM
    "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
    "OMP_NUM_THREADS": "1",  # as the JVM for tasks; OpenBLAS starts threads when it is imported
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # pyarrow would start a thread, too
}
_FREE: Final = frozenset(
    (
        *("_", "SHLVL", "PWD", "OLDPWD", "PYTHONPATH", "JE_ARROW_MALLOC_CONF"),
        "_PYSPARK_DRIVER_CONN_INFO_PATH",  # pyspark passes it to the JVM that it starts
    )
)
_FREE_PREFIXES: Final = ("SPARK_", "PYSPARK_", "PYTHON_")
_NEVER: Final = frozenset(
    (
        "PYSPARK_EXECUTOR_MEMORY_MB",  # limits of address space, which would count shared memory
        "PYSPARK_PLANNER_MEMORY_MB",
        "PYSPARK_ENABLE_NAMEDTUPLE_PATCH",  # read when pyspark is imported
        "PYTHON_FAULTHANDLER_DIR",
    )
)


class Caller(NamedTuple):
    """The properties of a Python process in which it differs from others on this machine."""

    executable: str
    directory: str
    words: tuple[str, ...]
    environ: Mapping[str, str]

    def path(self) -> list[str]:
        """The entries of PYTHONPATH without duplicates."""
        return list(dict.fromkeys(self.environ.get("PYTHONPATH", "").split(os.pathsep)))


def decoded(text: bytes) -> Caller:
    """The message of `fork_server_launcher.encoded`, without the length.

    Raises:
        ValueError: the message is malformed.
    """
    executable, directory, count, *rest = (os.fsdecode(part) for part in text.split(b"\0"))
    words, variables = rest[: int(count)], rest[int(count) :]
    environ = {name: value for name, _, value in (each.partition("=") for each in variables)}
    return Caller(executable, directory, tuple(words), environ)


def fits(own: Caller, asked: Caller) -> bool:
    """Whether a fork of `own` is equivalent to the requested process.

    Libraries read the environment when they are imported, so it must be the same, except for
    Spark's own variables for workers.
    """
    dash_m, module = (*asked.words, "", "")[:2]
    if dash_m != "-m" or not module.startswith("pyspark.") or asked.environ.keys() & _NEVER:
        return False
    if (own.executable, own.directory) != (asked.executable, asked.directory):
        return False
    theirs = {"OMP_NUM_THREADS": "1", **asked.environ}
    different = {name for name, _ in own.environ.items() ^ theirs.items()}
    free = {name for name in different if name in _FREE or name.startswith(_FREE_PREFIXES)}
    return own.path() == asked.path() and different == free


class _Child(NamedTuple):
    pid: int
    ended: int  # a file descriptor that is readable when the child has ended
    launcher: socket.socket


class ForkServer:
    """Serves launchers until the lifeline ends."""

    def __init__(self, own: Caller, listener: socket.socket, lifeline: int) -> None:
        self._own = own
        self._listener = listener
        self._lifeline = lifeline
        self._children: list[_Child] = []
        self._poller = select.poll()
        self._poller.register(listener, select.POLLIN)
        self._poller.register(lifeline, select.POLLIN)

    def serve(self) -> Caller | None:
        """Serve launchers. In a child, returns the caller to become; in the fork server, returns
        None at its end.
        """
        while True:
            ready = {fd for fd, _ in self._poller.poll()}
            if self._lifeline in ready:
                self._end(self._children)
                return None
            for child in [child for child in self._children if child.ended in ready]:
                self._reap(child)
            self._end([child for child in self._children if child.launcher.fileno() in ready])
            if self._listener.fileno() in ready:
                asked = self._answer(self._listener.accept()[0])
                if asked is not None:
                    return asked

    def _answer(self, launcher: socket.socket) -> Caller | None:
        """Fork a requested process, if that is possible."""
        try:
            asked, streams = received(launcher)
        except (OSError, ValueError):  # the launcher has ended, or is another program
            launcher.close()
            return None
        pid = self._fork(launcher, streams) if fits(self._own, asked) else None
        for stream in streams:
            os.close(stream)
        if pid == 0:
            return asked
        if pid is None:
            with suppress(OSError), launcher:
                launcher.sendall(REFUSED)
            return None
        child = _Child(pid, os.pidfd_open(pid), launcher)
        self._poller.register(child.ended, select.POLLIN)
        self._poller.register(launcher, select.POLLIN)
        self._children.append(child)
        return None

    def _fork(self, launcher: socket.socket, streams: Sequence[int]) -> int | None:
        """As `os.fork`; None if the fork fails. Of the descriptors, the child keeps only the
        streams.
        """
        try:
            pid = os.fork()
        except OSError:
            return None
        if pid == 0:
            try:
                launcher.sendall(TAKEN)
            except OSError:
                os._exit(1)  # the launcher has ended
            for target, stream in enumerate(streams):
                os.dup2(stream, target)
            for other in self._children:
                other.launcher.close()
                os.close(other.ended)
            launcher.close()
            os.close(self._lifeline)
            os.setpgid(0, 0)
        return pid

    def _end(self, children: Sequence[_Child]) -> None:
        """Terminate children whose launchers have ended."""
        for child in children:
            self._forget(child.launcher)
            os.kill(child.pid, signal.SIGTERM)

    def _reap(self, child: _Child) -> None:
        """Send an ended child's status to its launcher."""
        status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        self._forget(child.ended)
        self._forget(child.launcher)
        os.close(child.ended)
        with suppress(OSError), child.launcher:
            child.launcher.sendall(bytes([status if status >= 0 else 128 - status]))
        self._children.remove(child)

    def _forget(self, waited_for: int | socket.socket) -> None:
        with suppress(KeyError):  # already unregistered
            self._poller.unregister(waited_for)


def received(launcher: socket.socket) -> tuple[Caller, list[int]]:
    """Receive a launcher's message, and its standard streams.

    Raises:
        OSError: the launcher does not send in time, or has ended.
        ValueError: the message is malformed.
    """
    launcher.settimeout(REQUEST_LIMIT_S)
    launcher.sendall(READY)
    data, streams, _, _ = socket.recv_fds(launcher, 1 << 16, _STREAMS)
    try:
        while len(data) < LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES]):
            more = launcher.recv(1 << 16)
            if not more:
                raise ConnectionResetError("the launcher ended")
            data += more
        if len(streams) != _STREAMS:
            raise ValueError(f"{len(streams)} streams instead of {_STREAMS}")
        return decoded(data[LENGTH_BYTES:]), streams
    except (OSError, ValueError):
        for stream in streams:
            os.close(stream)
        raise


class Started(NamedTuple):
    """A running fork server."""

    environ: dict[str, str]
    """Additional environment variables for the program that runs Spark."""
    pid: int
    lifeline: int
    """A descriptor of this process: the fork server ends when it is closed."""


def start(environ: Mapping[str, str], *, is_for_next_program: bool = True) -> Started | None:
    """Start a fork server. Returns None if it cannot be started; workers then start in Spark's
    usual way.

    It ends with this process, or with the program that this process executes.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    lifeline, held = os.pipe()
    directory = None
    try:
        os.set_inheritable(lifeline, True)
        directory = Path(tempfile.mkdtemp(prefix="kafkapy-fork-server-"))  # only its owner enters
        added = {SOCKET_VARIABLE: str(directory / "socket")}
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", __name__, added[SOCKET_VARIABLE], str(lifeline)],
            {**environ, **added, **SET_HERE},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0)
                for stream in range(_STREAMS)
            ],
            setsid=True,  # so that only the JVM receives Ctrl-C
        )
    except OSError:
        os.close(held)
        if directory is not None:
            directory.rmdir()
        return None
    finally:
        os.close(lifeline)
    os.set_inheritable(held, is_for_next_program)
    return Started(added, pid, held)


def load() -> None:
    """Import the modules of workers, and exclude them from garbage collection, which pyspark.daemon
    runs after each task.
    """
    gc.disable()
    for module in MODULES:
        importlib.import_module(module)
    gc.freeze()
    gc.enable()
    import numpy as np

    os.register_at_fork(after_in_child=np.random.seed)  # or all workers draw the same numbers
    raise_open_files_limit()  # as the JVM does, whose children inherit the limit


def has_threads() -> bool:
    """Whether this process has threads, which a fork would lack."""
    return len(os.listdir("/proc/self/task")) > 1


def become(asked: Caller) -> None:
    """Run a worker's module as `python -m` would, in this process."""
    _, module, *words = asked.words
    os.environ.clear()
    os.environ.update(asked.environ)
    sys.argv = [module, *words]
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main(path: str, lifeline: int) -> None:
    """Run the fork server, or a process forked from it."""
    own = Caller(sys.executable, os.getcwd(), (), dict(os.environ))
    asked = None
    try:
        os.close(os.pidfd_open(os.getpid()))  # fail early if the kernel is too old for it
        with socket.socket(socket.AF_UNIX) as listener:
            with_short_name(listener.bind, path)
            listener.listen()
            load()
            if not has_threads():
                asked = ForkServer(own, listener, lifeline).serve()
    finally:
        if asked is None:
            shutil.rmtree(Path(path).parent, ignore_errors=True)
    if asked is not None:
        become(asked)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
