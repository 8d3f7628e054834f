"""Spark's own Kafka connector from Maven Central, the peer of the kafkapy source.

The jars are stored beside Apache Kafka's in the cache; `jars()` fetches them once. Transitive
dependencies of the connector are excluded: Spark has them.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.harness.processes.apache_kafka import (
    Unavailable,
    apt_install,
    cache_dir,
    java,
    run_or_unavailable,
)

# The version that matches pyspark; then one that also runs with it, for mirrors without the first.
# Each is (connector, its token provider).
VERSIONS = (("4.3.0", "4.3.0"), ("4.2.0", "4.0.0"))

_DEPENDENCY = """<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>
<version>{version}</version><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId>
</exclusion></exclusions></dependency>
"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>kafkapy</groupId><artifactId>connector</artifactId><version>1</version>
<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>
"""


def jars() -> tuple[str, list[Path]]:
    """The connector's version and its jars, fetched once. Raises Unavailable."""
    java()
    last = Unavailable("no version")
    for connector, provider in VERSIONS:
        libs = cache_dir() / "spark-connector" / connector
        if not libs.is_dir():
            try:
                _fetch(libs, connector, provider)
            except Unavailable as why:
                last = why
                continue
        return connector, sorted(libs.glob("*.jar"))
    raise last


def _fetch(libs: Path, connector: str, provider: str) -> None:
    if shutil.which("mvn") is None:
        apt_install("maven")
    wanted = [
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", connector),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", provider),
        ("org.apache.kafka", "kafka-clients", "3.9.1"),
        ("org.apache.commons", "commons-pool2", "2.12.0"),
    ]
    dependencies = "".join(
        _DEPENDENCY.format(group=group, artifact=artifact, version=version)
        for group, artifact, version in wanted
    )
    libs.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=libs.parent) as scratch:
        (Path(scratch) / "pom.xml").write_text(_POM.format(dependencies=dependencies))
        fetched = Path(scratch) / "libs"
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        run_or_unavailable(
            ["mvn", "-q", "-B", *goal, f"-DoutputDirectory={fetched}"], cwd=Path(scratch)
        )
        fetched.replace(libs)
