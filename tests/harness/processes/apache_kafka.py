"""Apache Kafka from Maven Central, run with `java -cp`: broker, ZooKeeper and tools.

The default release is 3.9; 4 has KRaft brokers only. The jars are in
`~/.cache/kafkapy/kafka-3.9` and `kafka-4` ($XDG_CACHE_HOME is honoured); `jars()` fetches them
once. Functions raise Unavailable if the peer is not available on this machine.

    python -m tests.harness.processes.apache_kafka kafka.tools.ConsoleProducer --help
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.harness.processes.broker_process import QUICK_SETTINGS, ServerProcess, free_port


class Release(NamedTuple):
    """A release of Apache Kafka.

    `directory` is the place of its jars. `logger` is the (group, artifact, version) of its logger,
    if it does not depend on one. `artifacts` are its own: `name` or `name:classifier`.
    """

    version: str
    directory: str
    logger: tuple[str, str, str] | None = None
    artifacts: tuple[str, ...] = ("kafka_2.13", "kafka-tools")


VERSION = "3.9.1"
KAFKA_3: Final = Release(VERSION, "kafka-3.9")
# With the artifacts that the other scripts in bin/ need.
KAFKA_3_WHOLE: Final = KAFKA_3._replace(
    directory="kafka-3.9-whole",
    artifacts=(*KAFKA_3.artifacts, "connect-mirror", "kafka-shell", "trogdor"),
)
# With the applications of Kafka's users, and the programs of Kafka's system tests.
KAFKA_3_APPS: Final = KAFKA_3._replace(
    directory="kafka-3.9-apps",
    artifacts=(
        *KAFKA_3.artifacts,
        *("kafka-streams", "kafka-streams:test", "kafka-clients:test"),
        *("connect-runtime", "connect-file", "connect-mirror"),
    ),
)
# The newest complete release on Maven Central (4.4.0 lacks the tools); Java 17 suffices.
KAFKA_4: Final = Release(
    "4.3.1", "kafka-4", ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
)
KAFKA_4_STREAMS: Final = KAFKA_4._replace(
    directory="kafka-4-streams",
    artifacts=(
        *KAFKA_4.artifacts,
        *("kafka-streams", "kafka-streams:test", "kafka-clients:test"),
    ),
)
# The Java client alone, the newest, with its logger and its compression libraries.
KAFKA_4_CLIENT: Final = Release(
    "4.4.0", "kafka-4-client", ("org.slf4j", "slf4j-nop", "1.7.36"), ("kafka-clients",)
)
FETCH_LIMIT_S = 600
TOOL_LIMIT_S = 600

CONSOLE_PRODUCER = "kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
DUMP_LOG_SEGMENTS = "kafka.tools.DumpLogSegments"
GET_OFFSET_SHELL = "org.apache.kafka.tools.GetOffsetShell"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
CONFIGS = "kafka.admin.ConfigCommand"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
STORAGE_TOOL = "kafka.tools.StorageTool"
BROKER = "kafka.Kafka"
ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>kafkapy</groupId><artifactId>peers</artifactId><version>1</version>
<packaging>pom</packaging>
<dependencies>
{dependencies}
</dependencies></project>
"""
DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId>
<version>{}</version>{}</dependency>"""

LOG4J = """log4j.rootLogger={level}, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
LOG4J_2 = """rootLogger.level={level}
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.target=SYSTEM_ERR
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
"""


class Unavailable(Exception):
    """A peer is not available on this machine; the message has the reason."""


def cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkapy"


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"


def run_or_unavailable(
    command: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    """Run a command that fetches. Raises Unavailable with its last line if it fails."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FETCH_LIMIT_S,
        )
    except FileNotFoundError:
        raise Unavailable(f"{name} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{name} took longer than {FETCH_LIMIT_S} s") from None
    if done.returncode != 0:
        raise Unavailable(f"{name} failed: {last_line(done.stderr or done.stdout)}")


def apt_install(*packages: str) -> None:
    """Install Debian packages as root. Raises Unavailable if that fails."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise Unavailable(f"install {' '.join(packages)} first (not root on Debian)")
    os.environ.setdefault("DEBIAN_FRONTEND", "noninteractive")
    run_or_unavailable(["apt-get", "update", "-q"])
    run_or_unavailable(["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages])


def java() -> str:
    """The java executable. Raises Unavailable."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None or not Path(found).exists():
        raise Unavailable("no Java runtime (JAVA_HOME or java on PATH)")
    return found


def installed(release: Release = KAFKA_3) -> bool:
    """Whether the jars are in the cache and a Java runtime is there."""
    try:
        java()
    except Unavailable:
        return False
    return _libs(release).is_dir()


def jars(release: Release = KAFKA_3) -> Path:
    """The directory with Apache Kafka's jars, fetched once. Raises Unavailable."""
    java()
    libs = _libs(release)
    if libs.is_dir():
        return libs
    if shutil.which("mvn") is None:
        apt_install("maven")
    libs.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=libs.parent) as scratch:
        (Path(scratch) / "pom.xml").write_text(_pom(release))
        fetched = Path(scratch) / "libs"
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        command = ["mvn", "-q", "-B", *goal, f"-DoutputDirectory={fetched}"]
        run_or_unavailable(command, cwd=Path(scratch))
        fetched.replace(libs)
    return libs


def _libs(release: Release) -> Path:
    return cache_dir() / release.directory / f"libs-{release.version}"


def archive_of(name: str, jars: Path) -> Path:
    """The path of the archive of the classes in `jars`, which `class_archives` makes.

    It is valid for one Java, one state of the jars and one text of that module, and its name
    identifies them.
    """
    program = Path(java()).resolve()
    what = zlib.crc32(str(jars).encode())
    made_by = Path(__file__).with_name("class_archives.py").read_bytes()
    state = [program, made_by, *(path.stat().st_mtime_ns for path in (program, jars))]
    return cache_dir() / f"{name}-{what:08x}-{zlib.crc32(repr(state).encode()):08x}.jsa"


def archives_for(archive: Path) -> str:
    """The pattern of the names of all archives of the same jars."""
    return f"{archive.stem.rpartition('-')[0]}-*.jsa"


def class_archive(release: Release = KAFKA_3) -> Path:
    """The path of the archive of Apache Kafka's classes."""
    return archive_of(release.directory, _libs(release))


def sharing(archive: Path) -> list[str]:
    """JVM options that use an archive, without messages if the JVM cannot use it."""
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off"] if archive.exists() else []


def _pom(release: Release) -> str:
    wanted = [("org.apache.kafka", name, release.version) for name in release.artifacts]
    wanted += [release.logger] if release.logger else []
    return POM.format(dependencies="\n".join(_dependency(*each) for each in wanted))


def _dependency(group: str, artifact: str, version: str) -> str:
    name, _, classifier = artifact.partition(":")
    more = f"<classifier>{classifier}</classifier>" if classifier else ""
    return DEPENDENCY.format(group, name, version, more)


def java_command(
    main_class: str,
    *args: str,
    heap_mb: int = 256,
    level: str = "WARN",
    release: Release = KAFKA_3,
) -> list[str]:
    """The command line of one of Kafka's classes; log lines go to stderr."""
    libs = jars(release)
    log4j = libs.parent / f"log4j-{level}.properties"
    name = "log4j2.configurationFile" if release.logger else "log4j.configuration"
    if not log4j.exists():
        log4j.write_text((LOG4J_2 if release.logger else LOG4J).format(level=level))
    return [
        java(),
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",  # runs are too short for the second compiler to pay off
        "-XX:CompileThresholdScaling=4",
        *sharing(class_archive(release)),
        f"-D{name}=file:{log4j}",
        "-cp",
        f"{libs}/*",
        main_class,
        *args,
    ]


def run_tool(
    main_class: str,
    *args: str,
    stdin: bytes = b"",
    limit_s: float = TOOL_LIMIT_S,
    release: Release = KAFKA_3,
) -> subprocess.CompletedProcess[bytes]:
    """Run a tool to its end; the caller judges exit status, stdout and stderr."""
    command = java_command(main_class, *args, release=release)
    return subprocess.run(command, input=stdin, capture_output=True, timeout=limit_s)


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path


class ZooKeeperProcess(ServerProcess):
    """Apache ZooKeeper, from the jars Kafka depends on."""

    def __init__(self, directory: Path) -> None:
        port = free_port()
        directory.mkdir(parents=True, exist_ok=True)
        settings = {
            "dataDir": str(directory / "data"),
            "clientPort": str(port),
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "maxClientCnxns": "0",
        }
        config = write_properties(directory / "zookeeper.properties", settings)
        command = java_command(ZOOKEEPER, str(config), level="INFO")
        super().__init__(command, port, directory / "zookeeper.out", "Apache ZooKeeper")

    def start(self) -> ZooKeeperProcess:
        self.launch()
        return self  # the broker waits for it by itself


class ApacheBroker(ServerProcess):
    """Apache Kafka: one KRaft node, or a ZooKeeper-mode broker if `zookeeper` is given.

    Has the same interface as BrokerProcess, so that the same checks run against both.
    """

    def __init__(
        self,
        log_dir: Path,
        overrides: Mapping[str, str] | None = None,
        zookeeper: ServerProcess | None = None,
        release: Release = KAFKA_3,
    ) -> None:
        port, controller_port = free_port(), free_port()
        self.log_dir = log_dir
        self.zookeeper = zookeeper
        self.release = release
        self.properties = {"log.dirs": str(log_dir), **QUICK_SETTINGS}
        if zookeeper is None:
            self.properties |= {
                "process.roles": "broker,controller",
                "node.id": "0",
                "controller.quorum.voters": f"0@127.0.0.1:{controller_port}",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "listeners": f"PLAINTEXT://127.0.0.1:{port},"
                f"CONTROLLER://127.0.0.1:{controller_port}",
            }
        else:
            self.properties |= {
                "broker.id": "0",
                "zookeeper.connect": zookeeper.bootstrap_servers,
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            }
        self.properties |= overrides or {}
        log_dir.mkdir(parents=True, exist_ok=True)
        self.config = write_properties(Path(f"{log_dir}.properties"), self.properties)
        command = java_command(
            BROKER, str(self.config), heap_mb=1024, level="INFO", release=release
        )
        super().__init__(command, port, Path(f"{log_dir}.out"), "Apache Kafka broker")

    def start(self) -> ApacheBroker:
        if self.zookeeper is None and not (self.log_dir / "meta.properties").exists():
            cluster_id = "kafkapyConformanceAAAA"
            words = ("format", "-t", cluster_id, "-c", str(self.config))
            done = run_tool(STORAGE_TOOL, *words, release=self.release)
            assert done.returncode == 0, done.stderr.decode()
        super().start()
        return self


if __name__ == "__main__":
    arguments = java_command(sys.argv[1], *sys.argv[2:])
    os.execv(arguments[0], arguments)
