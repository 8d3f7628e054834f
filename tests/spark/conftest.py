"""One Spark session for all tests of this folder; its workers run this Python."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from pyspark import SparkContext
from pyspark.sql import SparkSession

import kafkapy.spark
from kafkapy.spark.workers import engine
from kafkapy.testing import SchemaRegistry
from tests.harness.plugins import leaks
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.security.certificates import can_make
from tests.harness.security.secure_broker import SecureBroker
from tests.harness.security.secure_kafka import SecureApacheBroker
from tests.harness.spark.spark_topics import Topic
from tests.harness.spark.spark_wiring import Wire


@pytest.fixture(autouse=True, scope="session")
def compiled_kernels() -> None:
    """Numba compiles them once for a checkout, which takes longer than a launcher waits for the
    fork server; after that they are loaded."""
    for name in ("column_kernels", "row_kernels"):
        importlib.import_module(f"kafkapy.record.{name}")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    environment = dict(os.environ)
    assert kafkapy.spark.prepare_local_workers()  # their imports took half of the time
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    os.environ.clear()
    os.environ.update(environment)  # jobs that tests start have workers of their own
    yield session
    session.stop()


@pytest.fixture(autouse=True, scope="session")
def lines_to_the_jvm() -> None:
    """Connections between driver and JVM are opened when they are needed, each with a thread, and
    kept as long as the session."""
    leaks.add_session_filter(is_line_to_the_jvm)


def is_line_to_the_jvm(said: str) -> bool:
    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    if gateway is None or context is None:
        return False
    calls = gateway.get_callback_server()
    ports = [
        gateway.gateway_parameters.port,
        calls and calls.get_listening_port(),
        context._accumulatorServer.server_address[1],
    ]
    serving = [
        f"thread {thread.name}"
        for thread in threading.enumerate()
        if getattr(getattr(thread, "_target", None), "__module__", "").startswith("py4j.")
    ]
    return said in serving or any(f"('127.0.0.1', {port})" in said for port in ports)


@pytest.fixture(scope="session")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureApacheBroker | None]:
    """Apache Kafka, for what our broker does not serve; None if it cannot be had."""
    if not apache_kafka.installed() or not can_make("TLS and SASL through Spark"):
        yield None
        return
    with SecureApacheBroker(tmp_path_factory.mktemp("apache") / "logs") as broker:
        yield broker


@pytest.fixture(scope="session", params=["kafkapy", "apache"])
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureBroker | SecureApacheBroker | None]:
    """A broker with TLS and SCRAM, ours or Apache Kafka; None if it cannot be had."""
    if request.param == "apache":
        yield request.getfixturevalue("apache")
    elif not can_make("TLS and SASL through Spark"):
        yield None
    else:
        with SecureBroker(tmp_path_factory.mktemp("secure")) as broker:
            yield broker


@pytest.fixture(autouse=True)
def closed_clusters() -> Iterator[None]:
    """Close, after each test, the clusters that a worker keeps until it ends."""
    yield
    for cluster in engine.clusters.values():
        cluster.close()
    engine.clusters.clear()


@pytest.fixture
def wire(spark: SparkSession) -> Iterator[Wire]:
    """`wire(source=..., target=..., checkpoint=..., servers=...)`"""
    wired = Wire(spark)
    yield wired
    wired.clear()


@pytest.fixture
def make_topic(broker: BrokerProcess) -> Callable[..., Topic]:
    """`make_topic(partitions=1, config=None)`"""
    return lambda *args, **kwargs: Topic(broker.bootstrap_servers, *args, **kwargs)


@pytest.fixture(scope="module")
def registry(broker: BrokerProcess) -> Iterator[SchemaRegistry]:
    with SchemaRegistry(broker.bootstrap_servers) as running:
        yield running


@pytest.fixture
def client(registry: SchemaRegistry) -> Iterator[SchemaRegistryClient]:
    """Confluent's client of the registry."""
    with SchemaRegistryClient({"url": registry.url}) as opened:
        yield opened
