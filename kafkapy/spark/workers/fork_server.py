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
    FORKED,
    LENGTH_BYTES,
    READY,
    REFUSED,
    SOCKET_VARIABLE,
    call_with_short_path,
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
FIXED_ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0",  # as bin/spark-submit
    "PYTHONUNBUFFERED": "YES",  # as the JVM
    "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
    "OMP_NUM_THREADS": "1",  # as the JVM for tasks; OpenBLAS starts threads when it is imported
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # pyarrow would start a thread, too
}
_IGNORED_VARIABLES: Final = frozenset(
    (
        *("_", "SHLVL", "PWD", "OLDPWD", "PYTHONPATH", "JE_ARROW_MALLOC_CONF"),
        *("PS1", "PS2"),  # an activated venv exports PS1; bash removes both when it runs a script
        "_PYSPARK_DRIVER_CONN_INFO_PATH",  # pyspark passes it to the JVM that it starts
    )
)
_IGNORED_PREFIXES: Final = ("SPARK_", "PYSPARK_", "PYTHON_")
_REFUSED_VARIABLES: Final = frozenset(
    (
        "PYSPARK_EXECUTOR_MEMORY_MB",  # limits of address space, which would count shared memory
        "PYSPARK_PLANNER_MEMORY_MB",
        "PYSPARK_ENABLE_NAMEDTUPLE_PATCH",  # read when pyspark is imported
        "PYTHON_FAULTHANDLER_DIR",
    )
)


class ProcessSpec(NamedTuple):
    """The properties of a Python process in which it differs from others on this machine."""

    executable: str
    directory: str
    arguments: tuple[str, ...]
    environ: Mapping[str, str]

    def path(self) -> list[str]:
        """The entries of PYTHONPATH without duplicates."""
        return list(dict.fromkeys(self.environ.get("PYTHONPATH", "").split(os.pathsep)))


def decode_request(text: bytes) -> ProcessSpec:
    """The message of `fork_server_launcher.encoded`, without the length.

    Raises:
        ValueError: the message is malformed.
    """
    executable, directory, count, *rest = (os.fsdecode(part) for part in text.split(b"\0"))
    arguments, variables = rest[: int(count)], rest[int(count) :]
    environ = {name: value for name, _, value in (each.partition("=") for each in variables)}
    return ProcessSpec(executable, directory, tuple(arguments), environ)


def is_compatible(own: ProcessSpec, requested: ProcessSpec) -> bool:
    """Whether a fork of `own` is equivalent to the requested process.

    Libraries read the environment when they are imported, so it must be the same, except for
    Spark's own variables for workers.
    """
    dash_m, module = (*requested.arguments, "", "")[:2]
    if (
        dash_m != "-m"
        or not module.startswith("pyspark.")
        or requested.environ.keys() & _REFUSED_VARIABLES
    ):
        return False
    if (own.executable, own.directory) != (requested.executable, requested.directory):
        return False
    requested_environ = {"OMP_NUM_THREADS": "1", **requested.environ}
    different = {name for name, _ in own.environ.items() ^ requested_environ.items()}
    ignored = {
        name
        for name in different
        if name in _IGNORED_VARIABLES
        or name.startswith(_IGNORED_PREFIXES)
        or not name.isidentifier()  # dash removes these, such as exported functions of bash
    }
    return own.path() == requested.path() and different == ignored


class _Child(NamedTuple):
    pid: int
    pidfd: int  # a file descriptor that is readable when the child has ended
    launcher: socket.socket


class ForkServer:
    """Serves launchers until the lifeline ends."""

    def __init__(self, own: ProcessSpec, listener: socket.socket, lifeline: int) -> None:
        self._own = own
        self._listener = listener
        self._lifeline = lifeline
        self._children: list[_Child] = []
        self._poller = select.poll()
        self._poller.register(listener, select.POLLIN)
        self._poller.register(lifeline, select.POLLIN)

    def serve(self) -> ProcessSpec | None:
        """Serve launchers. In a child, returns the caller to become; in the fork server, returns
        None at its end.
        """
        while True:
            ready = {fd for fd, _ in self._poller.poll()}
            if self._lifeline in ready:
                self._terminate(self._children)
                return None
            for child in [child for child in self._children if child.pidfd in ready]:
                self._reap(child)
            self._terminate([child for child in self._children if child.launcher.fileno() in ready])
            if self._listener.fileno() in ready:
                requested = self._handle_request(self._listener.accept()[0])
                if requested is not None:
                    return requested

    def _handle_request(self, launcher: socket.socket) -> ProcessSpec | None:
        """Fork a requested process, if that is possible."""
        try:
            requested, streams = receive_request(launcher)
        except (OSError, ValueError):  # the launcher has ended, or is another program
            launcher.close()
            return None
        pid = self._fork(launcher, streams) if is_compatible(self._own, requested) else None
        for stream in streams:
            os.close(stream)
        if pid == 0:
            return requested
        if pid is None:
            with suppress(OSError), launcher:
                launcher.sendall(REFUSED)
            return None
        child = _Child(pid, os.pidfd_open(pid), launcher)
        self._poller.register(child.pidfd, select.POLLIN)
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
                launcher.sendall(FORKED)
            except OSError:
                os._exit(1)  # the launcher has ended
            for target, stream in enumerate(streams):
                os.dup2(stream, target)
            for other in self._children:
                other.launcher.close()
                os.close(other.pidfd)
            launcher.close()
            os.close(self._lifeline)
            os.setpgid(0, 0)
        return pid

    def _terminate(self, children: Sequence[_Child]) -> None:
        """Terminate children whose launchers have ended."""
        for child in children:
            self._unregister(child.launcher)
            os.kill(child.pid, signal.SIGTERM)

    def _reap(self, child: _Child) -> None:
        """Send an ended child's status to its launcher."""
        status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        self._unregister(child.pidfd)
        self._unregister(child.launcher)
        os.close(child.pidfd)
        with suppress(OSError), child.launcher:
            child.launcher.sendall(bytes([status if status >= 0 else 128 - status]))
        self._children.remove(child)

    def _unregister(self, source: int | socket.socket) -> None:
        with suppress(KeyError):  # already unregistered
            self._poller.unregister(source)


def receive_request(launcher: socket.socket) -> tuple[ProcessSpec, list[int]]:
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
            chunk = launcher.recv(1 << 16)
            if not chunk:
                raise ConnectionResetError("the launcher ended")
            data += chunk
        if len(streams) != _STREAMS:
            raise ValueError(f"{len(streams)} streams instead of {_STREAMS}")
        return decode_request(data[LENGTH_BYTES:]), streams
    except (OSError, ValueError):
        for stream in streams:
            os.close(stream)
        raise


class RunningForkServer(NamedTuple):
    """A running fork server."""

    environ: dict[str, str]
    """Additional environment variables for the program that runs Spark."""
    pid: int
    lifeline: int
    """A descriptor of this process: the fork server ends when it is closed."""


def start(
    environ: Mapping[str, str], *, is_for_next_program: bool = True
) -> RunningForkServer | None:
    """Start a fork server. Returns None if it cannot be started; workers then start in Spark's
    usual way.

    It ends with this process, or with the program that this process executes.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    read_end, write_end = os.pipe()
    directory = None
    try:
        os.set_inheritable(read_end, True)
        directory = Path(tempfile.mkdtemp(prefix="kafkapy-fork-server-"))  # only its owner enters
        variables = {SOCKET_VARIABLE: str(directory / "socket")}
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", __name__, variables[SOCKET_VARIABLE], str(read_end)],
            {**environ, **variables, **FIXED_ENVIRONMENT},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0)
                for stream in range(_STREAMS)
            ],
            setsid=True,  # so that only the JVM receives Ctrl-C
        )
    except OSError:
        os.close(write_end)
        if directory is not None:
            directory.rmdir()
        return None
    finally:
        os.close(read_end)
    os.set_inheritable(write_end, is_for_next_program)
    return RunningForkServer(variables, pid, write_end)


def preload() -> None:
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


def run_worker(requested: ProcessSpec) -> None:
    """Run a worker's module as `python -m` would, in this process."""
    _, module, *arguments = requested.arguments
    os.environ.clear()
    os.environ.update(requested.environ)
    sys.argv = [module, *arguments]
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main(path: str, lifeline: int) -> None:
    """Run the fork server, or a process forked from it."""
    own = ProcessSpec(sys.executable, os.getcwd(), (), dict(os.environ))
    requested = None
    try:
        os.close(os.pidfd_open(os.getpid()))  # fail early if the kernel is too old for it
        with socket.socket(socket.AF_UNIX) as listener:
            call_with_short_path(listener.bind, path)
            listener.listen()
            preload()
            if not has_threads():
                requested = ForkServer(own, listener, lifeline).serve()
    finally:
        if requested is None:
            shutil.rmtree(Path(path).parent, ignore_errors=True)
    if requested is not None:
        run_worker(requested)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
