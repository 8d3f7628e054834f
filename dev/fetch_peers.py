"""The peers that kafkapy is checked against: finds them, and fetches those that are missing.

`ensure()` fetches (scripts/test, scripts/conformance); `missing()` only looks, so that a plain
pytest never installs anything. The Python clients come with the extra `dev`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from dev import report
from tests.harness.processes import apache_kafka
from tests.harness.processes.apache_kafka import (
    Unavailable,
    apt_install,
    cache_dir,
    run_or_unavailable,
)

KAFKAJS_PACKAGES = ("kafkajs@2", "kafkajs-snappy@1")
JAVA_SOURCE = report.ROOT / "tests" / "conformance" / "java_peers" / "Peer.java"
GO_SOURCES = report.ROOT / "tests" / "conformance" / "go_peers"
# The KDC, kadmin.local, kinit, headers to build the extra `kerberos`, and kcat's SASL plug-in.
KERBEROS_PACKAGES = (
    *("krb5-kdc", "krb5-admin-server", "krb5-user", "libkrb5-dev"),
    "libsasl2-modules-gssapi-mit",
)

SHELLS = ("zsh", "fish")


def kafkajs_dir() -> Path:
    """Directory of kafkajs and its codec plug-ins, outside the repository."""
    return cache_dir() / "kafkajs"


def _reasons_file() -> Path:
    return cache_dir() / "peers.json"


def has_kcat() -> bool:
    return shutil.which("kcat") is not None


def has_kafkajs() -> bool:
    packages = kafkajs_dir() / "node_modules"
    return shutil.which("node") is not None and (packages / "kafkajs-snappy").is_dir()


def go_peers() -> Path:
    """The program of the clients in Go, built from `GO_SOURCES` as they are now."""
    return _built("go-peers", *GO_SOURCES.iterdir())


def java_peer() -> Path:
    """The classes of the program with the Java client, built from `JAVA_SOURCE` as it is now."""
    return _built("java-peer", JAVA_SOURCE)


def _built(name: str, *sources: Path) -> Path:
    """Path of the build of these sources in their present state."""
    digest = hashlib.sha256()
    for source in sorted(sources):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return cache_dir() / f"{name}-{digest.hexdigest()[:16]}"


def has_go_peers() -> bool:
    return go_peers().exists()


def fetch_kcat() -> None:
    apt_install("kcat")


def fetch_kafkajs() -> None:
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")  # Debian's package needs about 500 others
    directory = kafkajs_dir()
    directory.mkdir(parents=True, exist_ok=True)
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(directory)]
    flags += ["--cache", str(cache_dir() / "npm")]
    run_or_unavailable(["npm", "install", *flags, *KAFKAJS_PACKAGES])


def fetch_go_peers() -> None:
    if shutil.which("go") is None:
        raise Unavailable("go is not installed")
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "go" / "env"
    # Modules and telemetry in the cache, not in the home directory; the user's settings hold.
    environment = {
        "GOTOOLCHAIN": "local",
        "GOENV": str(settings),
        "GOPATH": str(cache_dir() / "go"),
        **os.environ,
        "XDG_CONFIG_HOME": str(cache_dir() / "config"),
    }
    cache_dir().mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-modcacherw", "-o", str(go_peers()), "."]
    run_or_unavailable(command, cwd=GO_SOURCES, env=environment)


def has_java_peer() -> bool:
    return (java_peer() / "Peer.class").exists()


def fetch_java_peer() -> None:
    libs = apache_kafka.jars(apache_kafka.KAFKA_4_CLIENT)
    classes = java_peer()
    javac = ["javac", "-cp", f"{libs}/*", "-d", str(classes), str(JAVA_SOURCE)]
    run_or_unavailable(javac)


def has_kerberos() -> bool:
    """Whether the programs of a realm and the library of its clients are installed."""
    programs = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
    return all(map(kerberos_program, programs)) and find_spec("gssapi") is not None


def kerberos_program(name: str) -> str | None:
    """Path of a program. Programs of administrators are not on the PATH of all users."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def fetch_kerberos() -> None:
    apt_install(*KERBEROS_PACKAGES)
    run_or_unavailable(
        [sys.executable, "-m", "pip", "install", "-q", "-e", f"{report.ROOT}[kerberos]"]
    )


def has_shells() -> bool:
    """Whether all shells with completions are installed."""
    return all(map(shutil.which, SHELLS))


def fetch_shells() -> None:
    apt_install(*SHELLS)


def fetch_kafka() -> None:
    apache_kafka.jars()


def has_kafka_4() -> bool:
    return apache_kafka.installed(apache_kafka.KAFKA_4)


def fetch_kafka_4() -> None:
    apache_kafka.jars(apache_kafka.KAFKA_4)


# name -> (is it there, fetch it)
OPTIONAL: dict[str, tuple[Callable[[], bool], Callable[[], None]]] = {
    "kcat": (has_kcat, fetch_kcat),
    "kafkajs": (has_kafkajs, fetch_kafkajs),
    "franz-go, sarama, kafka-go": (has_go_peers, fetch_go_peers),
    "the Java client of Kafka 4": (has_java_peer, fetch_java_peer),
    "zsh and fish": (has_shells, fetch_shells),
    "MIT Kerberos": (has_kerberos, fetch_kerberos),
    "Apache Kafka 3.9": (apache_kafka.installed, fetch_kafka),
    "Apache Kafka 4": (has_kafka_4, fetch_kafka_4),
}


def ensure(print_line: Callable[[str], None] = lambda _: None) -> dict[str, str]:
    """Fetch missing peers. Returns the reasons, by name, for those that are not available."""
    reasons = {}
    for name, (is_there, fetch) in OPTIONAL.items():
        if is_there():
            continue
        print_line(f"fetching {name}")
        try:
            fetch()
        except Unavailable as why:
            reasons[name] = str(why)
    cache_dir().mkdir(parents=True, exist_ok=True)
    _reasons_file().write_text(json.dumps(reasons))
    return reasons


def missing() -> dict[str, str]:
    """The reason, by name, for each optional peer that is not on this machine. Fetches nothing."""
    known = json.loads(_reasons_file().read_text()) if _reasons_file().exists() else {}
    return {
        name: known.get(name, "not fetched yet: run scripts/test")
        for name, (is_there, _) in OPTIONAL.items()
        if not is_there()
    }


def command_output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return (done.stdout or done.stderr).strip()


def main() -> None:
    for name, why in ensure(lambda text: print(f"kafkapy: {text}", file=sys.stderr)).items():
        print(f"kafkapy: not to be had here: {name} ({why})", file=sys.stderr)


if __name__ == "__main__":
    main()
