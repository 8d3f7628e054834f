"""A broker in a process of its own, on a free port and with a temporary directory."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kafkapy.admin.topics import NewTopic, create_topic
from kafkapy.client.cluster import Cluster
from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError
from kafkapy.common.java_properties import format_properties
from kafkapy.testing.forks import call_after_fork
from kafkapy.testing.topic_records import Record, read_topic
from kafkapy.tools.local import background, broker_processes
from kafkapy.tools.local.background import LaunchedServer

START_LIMIT_S: Final = 60.0
STOP_LIMIT_S: Final = 60.0
ANY_HOST: Final = ("", "0.0.0.0", "[::]")
PROCESS_MODULE: Final = "kafkapy.testing_broker"
DEFAULTS: Final[Mapping[str, str]] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",  # the system assigns a free port
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


class KafkaBroker:
    """One broker. It keeps its records when it is stopped, killed and started again, until `close`.

    The broker ends with this object and with this process, however this process ends. `properties`
    are those of server.properties, and take precedence over `DEFAULTS` and `log_dir`. Without a
    directory, the broker has a temporary one, which remains only if this process is killed while
    the broker is stopped. The end of a forked process does not end the broker. The attribute
    `log_dir` is the first directory, and `output` is the file with the broker's log. Neither path
    changes.

    `client_properties` are the login and the trusted certificates, as in client.properties, with
    which `create_topic` and `records` connect. The attribute of this name has the security protocol
    of the broker's first listener, too.
    """

    def __init__(
        self,
        properties: Mapping[str, object] | None = None,
        log_dir: Path | str | None = None,
        client_properties: Mapping[str, object] | None = None,
    ) -> None:
        self._directory = directory = Path(tempfile.mkdtemp(prefix="kafkapy-"))
        self._delete = weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        given = text_properties(properties)
        own = given.get("log.dirs") or given.get("log.dir") or log_dir
        # Absolute: the current directory may be another one at the next start.
        log_dirs = [
            Path(name).absolute() for name in comma_separated(str(own or directory / "logs"))
        ]
        self.log_dir = log_dirs[0]
        self.output = directory / broker_processes.OUTPUT_FILE
        self._properties = {**DEFAULTS, **given, "log.dirs": ",".join(map(str, log_dirs))}
        protocol = _security_protocol(self._properties)
        self.client_properties = {
            "security.protocol": protocol,
            **text_properties(client_properties),
        }
        self._address: str | None = None
        self._launched: LaunchedServer | None = None
        call_after_fork(self, KafkaBroker._leave_to_parent)

    @property
    def bootstrap_servers(self) -> str:
        """The broker's address. It is known after the first start, and does not change."""
        if self._address is None:
            raise ConfigError("The broker has no address before it has started")
        return self._address

    @property
    def pid(self) -> int:
        """The id of the broker's process."""
        return self._running().process.pid

    @property
    def is_running(self) -> bool:
        return self._launched is not None and self._launched.process.poll() is None

    # lifecycle

    def start(self) -> Self:
        """Start the broker, for the first time or again. Returns when it serves clients.

        Raises:
            ConfigError: a property is wrong, or the broker did not start; with the end of its log.
        """
        if self.is_running:
            return self
        self._forget()  # a process that ended by itself
        if not self._delete.alive:
            raise ConfigError("The broker was closed: create another one")
        # A file: every user of the machine could read passwords on a command line.
        file = self.output.with_name("server.properties")
        file.write_text(format_properties(self._properties), encoding="utf-8")
        launched = background.launch(
            [str(file)], self.output, ends_with_parent=True, module=PROCESS_MODULE
        )
        self._end_if_dropped = weakref.finalize(
            self, _end_process, launched.process, self._closing_signal
        )
        self._launched = launched
        try:
            broker_processes.wait_until_serving(launched, START_LIMIT_S)
            if self._address is None:
                self._keep_addresses(broker_processes.bound_addresses(launched))
        except BaseException:  # Ctrl-C too, or the next start would return without an address
            launched.process.kill()
            self._forget()
            raise
        return self

    def stop(self) -> None:
        """Stop the broker cleanly, as an operator does. Its logs are flushed.

        Raises:
            ConfigError: the broker does not run, or did not end in time and was killed.
        """
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the broker, as in a power cut: it flushes nothing, and notifies no other process."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Suspend the broker until `resume`. Its connections stay open, and it does not respond."""
        self._running().process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the broker after `pause`."""
        self._running().process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the broker, and delete its temporary directory."""
        if self.is_running:
            self._end(self._closing_signal)
        self._forget()
        self._delete()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # topics

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, object] | None = None
    ) -> str:
        """Create a topic. Returns its name.

        Raises:
            ApiError: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG, ...
        """
        topic = NewTopic(name, partitions, 1, configs=text_properties(configs))
        with Cluster(self.bootstrap_servers, self.client_properties) as cluster:
            create_topic(cluster, topic)
        return name

    def records(self, topic: str, read_committed: bool = True) -> list[Record]:
        """All records that a topic has at the call, by partition and offset. With `read_committed`,
        records of transactions that were not committed are left out.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, ...
        """
        return read_topic(self.bootstrap_servers, topic, read_committed, self.client_properties)

    # internals

    @property
    def _closing_signal(self) -> signal.Signals:
        is_temporary = self.log_dir.is_relative_to(self._directory)
        return signal.SIGKILL if is_temporary else signal.SIGTERM

    def _keep_addresses(self, bound: Sequence[str]) -> None:
        """Keep the addresses of the first start. Later starts listen on the same ports."""
        names = [
            listener.rpartition(":")[0]
            for listener in comma_separated(self._properties["listeners"])
        ]
        ports = [address.rpartition(":")[2] for address in bound]
        kept = [f"{name}:{port}" for name, port in zip(names, ports, strict=True)]
        self._properties["listeners"] = ",".join(kept)
        host = names[0].partition("://")[2]  # a name as in certificates, not the bound address
        self._address = f"{'localhost' if host in ANY_HOST else host}:{ports[0]}"

    def _running(self) -> LaunchedServer:
        if self._launched is None or not self.is_running:
            raise ConfigError("The broker does not run")
        return self._launched

    def _end(self, sent: signal.Signals) -> None:
        launched = self._running()
        try:
            _end_process(launched.process, sent)
        finally:
            self._forget()

    def _forget(self) -> None:
        launched, self._launched = self._launched, None
        if launched is not None:
            self._end_if_dropped.detach()
            _close_input(launched.process)
            launched.process.wait()

    def _leave_to_parent(self) -> None:
        """In a forked process: neither end the broker nor delete its directory, and close its
        input, which would keep it running after the end of the parent."""
        self._delete.detach()
        launched, self._launched = self._launched, None
        if launched is not None:
            self._end_if_dropped.detach()
            _close_input(launched.process)


def _end_process(process: subprocess.Popen[bytes], sent: signal.Signals) -> None:
    """
    Raises:
        ConfigError: it did not end in time, and was killed.
    """
    process.send_signal(signal.SIGCONT)  # a paused process handles no other signal
    process.send_signal(sent)
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise ConfigError(f"The broker did not end within {STOP_LIMIT_S:.0f} s") from None
    finally:
        _close_input(process)
        process.wait()


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def text_properties(properties: Mapping[str, object] | None) -> dict[str, str]:
    """Properties as in a file: tests also give numbers and paths."""
    return {name: str(value) for name, value in (properties or {}).items()}


def _security_protocol(properties: Mapping[str, str]) -> str:
    """The security protocol of the first listener."""
    name = properties["listeners"].partition("://")[0].strip().upper()
    of_names = comma_separated(properties.get("listener.security.protocol.map", "").upper())
    return dict(item.split(":", 1) for item in of_names if ":" in item).get(name, name)
