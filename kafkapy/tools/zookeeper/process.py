"""Runs a ZooKeeper on this machine: kafkapy's own, or Apache's from the jars that pyspark ships.

Its process keeps `kafkapy-zookeeper.pid` locked in its data directory, so that only ZooKeepers
started by kafkapy are ever signalled.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Final, NoReturn

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_environment import JVM_VARIABLES
from kafkapy.common.java_numbers import is_natural
from kafkapy.common.java_properties import format_properties
from kafkapy.tools.local import background, pid_files
from kafkapy.tools.local.background import LaunchedServer
from kafkapy.tools.local.ports import check_port
from kafkapy.tools.local.private_files import check_owner, write_config_privately
from kafkapy.tools.zookeeper.implementations import Implementation
from kafkapy.zk.service.settings import DATA_FILE

PID_FILE: Final = "kafkapy-zookeeper.pid"
CONFIG_FILE: Final = "kafkapy-zookeeper.cfg"
OUTPUT_FILE: Final = "zookeeper.out"
MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

LOOPBACK: Final = "127.0.0.1"
_PORTS: Final = ("clientPort", "secureClientPort")
# The values of Kafka's config/zookeeper.properties.
DEFAULTS: Final = {"dataDir": "/tmp/zookeeper", "clientPort": "2181"}
APACHE_DEFAULTS: Final = {"maxClientCnxns": "0", "admin.enableServer": "false"}
# The data of each server in its data directory. The other server cannot read it.
_DATA_NAMES: Final = {Implementation.KAFKAPY: DATA_FILE, Implementation.APACHE: "version-2"}

# The jars of pyspark that the server loads. It uses netty only with TLS.
_JARS: Final = (
    *("zookeeper-3", "zookeeper-jute", "slf4j-api", "log4j-slf4j2-impl", "log4j-api"),
    *("log4j-core", "metrics-core", "snappy-java", "netty-buffer", "netty-codec-base"),
    *("netty-common", "netty-handler-4", "netty-resolver-4", "netty-transport-4"),
    *("netty-transport-classes-epoll", "netty-transport-native-unix-common"),
)
_NO_APACHE_ZOOKEEPER: Final = (
    "There is no Apache ZooKeeper to start here. kafkapy has its own: --implementation kafkapy."
    "\nOr run one of your own and give its address to each broker:"
    "\n  apt-get install zookeeperd    (Debian; it serves at 127.0.0.1:2181)"
    "\n  kafkapy server start --override zookeeper.connect=127.0.0.1:2181 ..."
    "\nOr install pyspark (1.2 GB), which brings the jars of one: pip install pyspark."
    "\nA single broker needs no ZooKeeper: kafkapy server start"
)
_HEAP: Final = "-Xmx128m"
_JVM_FLAGS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_POLL_S: Final = 0.02
_RESPONSE_LIMIT_S: Final = 2.0


def java() -> str:
    """The Java executable: of JAVA_HOME, or on the PATH.

    Raises:
        ConfigError: no executable is found.
    """
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None or not os.access(found, os.X_OK):
        where = f"JAVA_HOME={home}" if home else "the PATH"
        raise ConfigError(
            f"ZooKeeper needs a Java runtime, and there is none at {where}: install a JRE"
            " (Debian: apt-get install default-jre-headless), or point zookeeper.connect at a"
            " ZooKeeper elsewhere"
        )
    return found


def class_path() -> str:
    """The class path of ZooKeeper and its dependencies, from pyspark's jars.

    Raises:
        ConfigError: pyspark is not installed, or has no ZooKeeper jar.
    """
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise ConfigError(_NO_APACHE_ZOOKEEPER)
    directory = Path(package.origin).parent / "jars"
    jars = sorted(path for path in directory.glob("*.jar") if path.name.startswith(_JARS))
    if not any(path.name.startswith("zookeeper-3") for path in jars):
        raise ConfigError(f"There is no zookeeper jar in {directory}: install pyspark 4")
    return ":".join(map(str, jars))


def effective_config(
    file: Mapping[str, str],
    overrides: Mapping[str, str],
    implementation: Implementation = Implementation.KAFKAPY,
) -> dict[str, str]:
    """The configuration: the overrides, then the file, then the defaults.

    Raises:
        ConfigError: a client port is not a valid port.
    """
    # Apache's server ignores blanks around values. In Java's properties, those at the end count.
    given = {key: value.strip() for key, value in {**file, **overrides}.items()}
    server_defaults = APACHE_DEFAULTS if implementation is Implementation.APACHE else {}
    config = {**DEFAULTS, **server_defaults, **given, **_addresses(given)}
    if "secureClientPort" in given and "clientPort" not in given:
        del config["clientPort"]  # as Apache's server: with TLS, no default port without TLS
    for name in _PORTS:
        port = config.get(name, "1")
        if not is_natural(port) or not 0 < int(port) <= 65535:
            raise ConfigError(f"Invalid value {port} for configuration {name}: it must be a port")
    return config


def _addresses(given: Mapping[str, str]) -> dict[str, str]:
    """The loopback address for each port without an address. By default, ZooKeeper listens on every
    interface, without authentication. Members of an ensemble (`server.N`) serve other machines:
    then nothing is returned.

    An empty address means loopback too, as in Java. A socket would bind every interface.
    """
    if any(key.startswith("server.") for key in given):
        return {}
    ports = ["clientPort", *(["secureClientPort"] if "secureClientPort" in given else [])]
    names = [f"{port}Address" for port in ports]
    return {name: LOOPBACK for name in names if not given.get(name, "").strip()}


def check(config: Mapping[str, str], implementation: Implementation) -> None:
    """
    Raises:
        ConfigError: a server already runs on the data directory, or the directory has data of the
            other implementation, or another user has prepared it; the port is in use; a setting is
            wrong; or Java or the ZooKeeper jar is missing for Apache's server.
    """
    check_owner(Path(config["dataDir"]), "dataDir")
    running = server_of(config["dataDir"])
    if running is not None:
        raise ConfigError(f"A ZooKeeper runs on {config['dataDir']} already, with pid {running}")
    for other in set(Implementation) - {implementation}:
        if os.path.exists(Path(config["dataDir"]) / _DATA_NAMES[other]):
            raise ConfigError(
                f"{config['dataDir']} holds the data of the other ZooKeeper ({_DATA_NAMES[other]}):"
                f" start it with --implementation {other}, or name another directory"
            )
    for host, port in addresses_of(config).values():
        check_port(host, port, "ZooKeeper")
    if implementation is Implementation.KAFKAPY:
        from kafkapy.tools.zookeeper.server_security import security_of

        security_of(config)
        return
    java()
    class_path()


def prepare(config: Mapping[str, str]) -> list[str]:
    """Write the configuration into the data directory. Returns the command of Apache's server.

    Raises:
        ConfigError: Java or pyspark is missing, or the data directory cannot be written.
    """
    heap, flags, *other_flags = (
        os.environ.get(name, "").split() for name in (*JVM_VARIABLES, "JVMFLAGS")
    )
    # Java does not start with two garbage collectors, and Kafka's performance options select one.
    words = [java(), *(heap or [_HEAP]), *(flags or _JVM_FLAGS), *chain.from_iterable(other_flags)]
    words += ["-Dlog4j2.level=INFO", "-Dzookeeper.4lw.commands.whitelist=ruok,srvr,stat,mntr"]
    words += ["-cp", class_path(), MAIN_CLASS]
    return [*words, str(_write_config(config))]


def _write_config(config: Mapping[str, str]) -> Path:
    file = Path(config["dataDir"]) / CONFIG_FILE
    write_config_privately(file, format_properties(config))
    return file


def run_in_foreground(config: Mapping[str, str], implementation: Implementation) -> int:
    """Serve in this process. Returns the exit status. Apache's server replaces the process, so
    the call does not return.

    Raises:
        ConfigError: as `check`, or the server cannot be started.
    """
    check(config, implementation)
    if implementation is Implementation.APACHE:
        _exec_apache(config)
    lock_fd = _lock_data_dir(config)
    try:
        from kafkapy.tools.zookeeper.server import run

        return run(config, addresses_of(config))
    finally:
        os.close(lock_fd)


def _exec_apache(config: Mapping[str, str]) -> NoReturn:
    words = prepare(config)
    os.set_inheritable(_lock_data_dir(config), True)  # Java keeps the file open, and so the lock
    # Without a UTF-8 locale Java cannot open files whose names are not ASCII.
    os.execve(words[0], words, {**os.environ, "LC_ALL": "C.UTF-8"})


def _lock_data_dir(config: Mapping[str, str]) -> int:
    """Lock the data directory for this process. Returns the descriptor that holds the lock."""
    file = Path(config["dataDir"]) / PID_FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock_fd = pid_files.lock(file)
    except OSError as error:
        raise ConfigError(f"Cannot write {file}: {error.strerror}") from error
    if lock_fd is None:
        raise ConfigError(f"Another process has locked {file}")
    return lock_fd


def launch(config: Mapping[str, str], implementation: Implementation) -> LaunchedServer:
    """Start the server in the background. Its output goes to $LOG_DIR or the data directory.

    Raises:
        ConfigError: as `check`, or the server cannot be started.
    """
    check(config, implementation)
    file = _write_config(config)
    output = Path(os.environ.get("LOG_DIR") or config["dataDir"]) / OUTPUT_FILE
    words = ["zookeeper", "start", str(file), "--implementation", implementation]
    try:
        return background.launch(words, output)
    except OSError as error:
        raise ConfigError(
            f"Cannot start ZooKeeper with its output in {output}: {error.strerror}"
        ) from error


def wait_until_serving(launched: LaunchedServer, config: Mapping[str, str], limit_s: float) -> None:
    """Return when a launched server accepts sessions.

    Raises:
        ConfigError: it ended (with the end of its output), or was not ready in time.
    """
    deadline_s = time.monotonic() + limit_s  # a check without an answer takes seconds
    while time.monotonic() < deadline_s:
        try:
            status = launched.process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            if _is_ready(config):
                return
            continue
        raise ConfigError(f"ZooKeeper ended with status {status}.{launched.last_lines()}")
    raise ConfigError(f"ZooKeeper is not ready after {limit_s:.0f} s; see {launched.output}")


def start_in_background(
    config: Mapping[str, str], implementation: Implementation, limit_s: float
) -> tuple[int, Path]:
    """Start the server. Returns its pid and its output file when it serves.

    Raises:
        ConfigError: as `launch` and `wait_until_serving`. The process has been ended then.
    """
    with background.end_on_failure() as started:
        launched = launch(config, implementation)
        started.append(launched)
        wait_until_serving(launched, config, limit_s)
    return launched.process.pid, launched.output


def addresses_of(config: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """The server's addresses, by the name of the port: `clientPort`, `secureClientPort`."""
    return {
        name: (config.get(f"{name}Address", LOOPBACK), int(config[name]))
        for name in _PORTS
        if name in config
    }


def address_of(config: Mapping[str, str]) -> tuple[str, int]:
    """The server's address for clients on this machine: the TLS port only if it has no other."""
    host, port = next(iter(addresses_of(config).values()))
    return (LOOPBACK if host == "0.0.0.0" else host), port


def _is_ready(config: Mapping[str, str]) -> bool:
    """Whether the server accepts sessions. If it has only a TLS port, whether it listens: a
    request could need a certificate."""
    if "clientPort" in config:
        return serves(*address_of(config))
    try:
        socket.create_connection(address_of(config), timeout=_RESPONSE_LIMIT_S).close()
    except OSError:
        return False
    return True


def serves(host: str, port: int) -> bool:
    """Whether a ZooKeeper at this address accepts sessions.

    ZooKeeper answers `ruok` even before it has loaded its data. The answer to `srvr` shows whether
    it serves yet.
    """
    response = four_letter_word(host, port, "srvr")
    if "is not in the whitelist" in response:
        return four_letter_word(host, port, "ruok") != ""
    return response.startswith("Zookeeper version:")


def four_letter_word(host: str, port: int, word: str) -> str:
    """A ZooKeeper's answer to a four-letter command; "" without an answer."""
    response = b""
    try:
        with socket.create_connection((host, port), timeout=_RESPONSE_LIMIT_S) as connection:
            connection.sendall(word.encode())
            while part := connection.recv(4096):
                response += part
    except OSError:
        return ""
    return response.decode(errors="replace")


def server_of(data_dir: str) -> int | None:
    """The pid of the ZooKeeper that kafkapy runs on a data directory, if one runs."""
    return pid_files.holder(Path(data_dir) / PID_FILE)


def running_servers() -> list[int]:
    """The pids of all of this user's ZooKeepers that kafkapy started."""
    return pid_files.holders(PID_FILE)


def is_zookeeper(pid: int) -> bool:
    """Whether a process of this user is a ZooKeeper that kafkapy started."""
    return pid_files.holds(pid, PID_FILE)
