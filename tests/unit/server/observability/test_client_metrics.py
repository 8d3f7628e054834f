"""Pushed metrics come out in Prometheus' format, while their client is there."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.metadata.client_metrics import ClientInformation
from kafkapy.metadata.telemetry import EXPIRY_MS_MIN, ClientTelemetry
from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress
from kafkapy.server.observability.client_metrics import ClientMetrics
from tests.harness.cores.ports import ManualClock, SeededRandom
from tests.harness.processes.scraped import scrape

CLIENT = ClientInformation("", "billing", "librdkafka", "2.16", "10.0.0.1", "5000")
GAUGE = Metric(name="g", gauge=Gauge(data_points=[NumberDataPoint(as_double=0.5)]))
DATA = MetricsData(
    resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[GAUGE])])]
).SerializeToString()


class World:
    """A broker, and a client that pushes each second."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        telemetry = ClientTelemetry(1_000, SeededRandom(1))
        telemetry.subscribe("m", {"metrics": "*", "interval.ms": "1000"})
        self.metrics = ClientMetrics(telemetry, self.clock)
        self.id, self.instance = telemetry.get(self.clock.monotonic_ms(), ZERO_UUID, CLIENT)

    def push(self, codec: Codec = Codec.NONE, data: bytes = DATA) -> None:
        self.metrics.store(self.id, self.metrics.read(self.client, codec, compress(codec, data)))

    @property
    def client(self) -> ClientInformation:
        return self.instance.client

    def text(self) -> str:
        return "".join(self.metrics.text())


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("codec", list(Codec))
def test_what_is_pushed_is_exported_with_the_client(world: World, codec: Codec) -> None:
    assert world.text() == ""
    world.push(codec)
    assert world.text().splitlines()[2:] == [
        "kafka_server_client_metrics_instance_info{"
        f'client_id="billing",client_instance_id="{world.id}",client_software_name="librdkafka",'
        'client_software_version="2.16",client_source_address="10.0.0.1"} 1',
        "# TYPE g gauge",
        f'g{{client_id="billing",client_instance_id="{world.id}"}} 0.5',
    ]


def test_what_cannot_be_read_is_counted(world: World) -> None:
    for codec, data in ((Codec.NONE, b"\xff"), (Codec.ZSTD, bytes(1_001))):
        with pytest.raises(ApiError) as error:
            world.push(codec, data)
        assert error.value.code is ErrorCode.INVALID_RECORD
    counted = scrape(world.metrics)
    assert counted["server_client_metrics_plugin_error_count_total"] == 2
    assert counted["server_client_metrics_plugin_export_count_total"] == 0


def test_brokers_without_pushes_do_not_import_the_library() -> None:
    modules = "kafkapy.server.broker, kafkapy.server.observability.metrics_server"
    program = f"import sys, {modules}; print(*sys.modules)"
    words = [sys.executable, "-c", program]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert "kafkapy.metadata.otlp" in found
    assert not [name for name in found if name.startswith(("opentelemetry", "google"))]


def test_series_end_with_their_client(world: World) -> None:
    world.push()
    world.clock.now_ms += EXPIRY_MS_MIN + 10_000
    assert world.text() == ""
    world.push()
    assert world.text() == "", "its instance was forgotten while another thread read the push"
