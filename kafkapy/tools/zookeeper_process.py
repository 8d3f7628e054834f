"""A real Apache ZooKeeper on this machine, run from the jars that pyspark ships.

The process is Java's; it carries a mark on its command line, and its pid in the data directory, so
that only ZooKeepers started by kafkapy are ever signalled.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.tools.private_files import write_privately

PID_FILE: Final = "kafkapy-zookeeper.pid"
CONFIG_FILE: Final = "kafkapy-zookeeper.cfg"
OUTPUT_FILE: Final = "zookeeper.out"
MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

# The values of Kafka's config/zookeeper.properties.
DEFAULTS: Final = {
    "dataDir": "/tmp/zookeeper",
    "clientPort": "2181",
    "maxClientCnxns": "0",
    "admin.enableServer": "false",
}

_MARK: Final = "-Dkafkapy.zookeeper=true"
# What the server loads from pyspark's jars; netty only where the configuration asks for TLS.
_JARS: Final = (
    *("zookeeper-3", "zookeeper-jute", "slf4j-api", "log4j-slf4j2-impl", "log4j-api"),
    *("log4j-core", "metrics-core", "snappy-java", "netty-buffer", "netty-codec-base"),
    *("netty-common", "netty-handler-4", "netty-resolver-4", "netty-transport-4"),
    *("netty-transport-classes-epoll", "netty-transport-native-unix-common"),
)
_HEAP: Final = "-Xmx128m"
_JVM_FLAGS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_POLL_S: Final = 0.02
_ANSWER_LIMIT_S: Final = 2.0
_OUTPUT_LINES: Final = 5
_PROC: Final = Path("/proc")


def java() -> str:
    """The Java executable: of JAVA_HOME, or on the PATH.

    Raises:
        ConfigError: there is none.
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
    """ZooKeeper and what it loads, as pyspark ships them.

    Raises:
        ConfigError: pyspark, or ZooKeeper in it, is not there.
    """
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise ConfigError(
            "ZooKeeper runs from the jars of pyspark, which is not installed: pip install"
            " 'kafkapy[spark]', or point zookeeper.connect at a ZooKeeper elsewhere"
        )
    directory = Path(package.origin).parent / "jars"
    jars = sorted(path for path in directory.glob("*.jar") if path.name.startswith(_JARS))
    if not any(path.name.startswith("zookeeper-3") for path in jars):
        raise ConfigError(f"There is no zookeeper jar in {directory}: install pyspark 4")
    return ":".join(map(str, jars))


def effective_config(file: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str]:
    """Defaults, under the file, under the overrides.

    Raises:
        ConfigError: the client port is not a port.
    """
    config = {**DEFAULTS, **file, **overrides}
    port = config["clientPort"]
    if not port.isdecimal() or not 0 < int(port) <= 65535:
        raise ConfigError(f"Invalid value {port} for configuration clientPort: it must be a port")
    return config


def prepare(config: Mapping[str, str]) -> list[str]:
    """Write the configuration into the data directory; the command line of the server.

    Raises:
        ConfigError: no Java, no pyspark, or the data directory cannot be written.
    """
    words = [java(), _HEAP, *_JVM_FLAGS, _MARK, *os.environ.get("JVMFLAGS", "").split()]
    words += ["-Dlog4j2.level=INFO", "-Dzookeeper.4lw.commands.whitelist=ruok,srvr,stat,mntr"]
    words += ["-cp", class_path(), MAIN_CLASS]
    file = Path(config["dataDir"]) / CONFIG_FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Java reads property files as Latin-1 with backslash escapes.
        lines = [f"{key}={value}\n".replace("\\", "\\\\") for key, value in config.items()]
        write_privately(file, "".join(lines).encode("latin-1", "backslashreplace"))
    except OSError as error:
        raise ConfigError(f"Cannot write {file}: {error.strerror}") from error
    return [*words, str(file)]


def run_in_foreground(config: Mapping[str, str]) -> None:
    """Become the server: this process does not return from here.

    Raises:
        ConfigError: it cannot be started.
    """
    words = prepare(config)
    _write_pid(config, os.getpid())
    os.execv(words[0], words)


def start_in_background(config: Mapping[str, str], limit_s: float) -> tuple[int, Path]:
    """Start the server; returns its pid and the file of its output when it serves.

    Raises:
        ConfigError: one runs there already, the port is taken, it ended, or was not ready in time.
    """
    running = server_of(config["dataDir"])
    if running is not None:
        raise ConfigError(f"A ZooKeeper runs on {config['dataDir']} already, with pid {running}")
    host, port = address_of(config)
    if _somebody_listens(host, port):
        raise ConfigError(f"Another process listens at {host}:{port} already")
    words = prepare(config)
    output = Path(os.environ.get("LOG_DIR") or config["dataDir"]) / OUTPUT_FILE
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as sink:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _write_pid(config, process.pid)
    for _ in range(int(limit_s / _POLL_S)):
        try:
            status = process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            if serves(host, port):
                return process.pid, output
            continue
        raise ConfigError(f"ZooKeeper ended with status {status}.{_end_of(output)}")
    raise ConfigError(f"ZooKeeper is not ready after {limit_s:.0f} s; see {output}")


def address_of(config: Mapping[str, str]) -> tuple[str, int]:
    """Where clients of this machine reach the server."""
    host = config.get("clientPortAddress", "127.0.0.1")
    return ("127.0.0.1" if host == "0.0.0.0" else host), int(config["clientPort"])


def serves(host: str, port: int) -> bool:
    """Whether a ZooKeeper there takes sessions.

    `ruok` alone is answered before the data is loaded; `srvr` then says that nothing is served yet.
    """
    answer = four_letter_word(host, port, "srvr")
    if "is not in the whitelist" in answer:
        return four_letter_word(host, port, "ruok") != ""
    return answer.startswith("Zookeeper version:")


def four_letter_word(host: str, port: int, word: str) -> str:
    """A ZooKeeper's answer to an admin word; "" when nobody answers."""
    answer = b""
    try:
        with socket.create_connection((host, port), timeout=_ANSWER_LIMIT_S) as connection:
            connection.sendall(word.encode())
            while part := connection.recv(4096):
                answer += part
    except OSError:
        return ""
    return answer.decode(errors="replace")


def _somebody_listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_ANSWER_LIMIT_S).close()
    except OSError:
        return False
    return True


def server_of(data_dir: str, proc: Path = _PROC) -> int | None:
    """The pid of the ZooKeeper that kafkapy runs on a data directory, if one runs."""
    try:
        pid = int((Path(data_dir) / PID_FILE).read_text())
    except (OSError, ValueError):
        return None
    return pid if is_zookeeper(pid, proc) else None


def running_servers(proc: Path = _PROC) -> list[int]:
    """The pids of all of this user's ZooKeepers that kafkapy started."""
    return [pid for pid in sorted(_pids(proc)) if is_zookeeper(pid, proc)]


def is_zookeeper(pid: int, proc: Path = _PROC) -> bool:
    """Whether a process of this user is a ZooKeeper that kafkapy started."""
    directory = proc / str(pid)
    try:
        words = (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
        mine = directory.stat().st_uid == os.geteuid()
    except OSError:
        return False
    return mine and _MARK in words and MAIN_CLASS in words


def _pids(proc: Path) -> Iterable[int]:
    return (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())


def _write_pid(config: Mapping[str, str], pid: int) -> None:
    (Path(config["dataDir"]) / PID_FILE).write_text(f"{pid}\n")


def _end_of(output: Path) -> str:
    lines = output.read_text(errors="replace").splitlines()[-_OUTPUT_LINES:]
    return "".join(f"\n  {line}" for line in lines)
