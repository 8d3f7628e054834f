"""`kafkapy producer-perf`: flags and properties."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkapy.cli.commands.producer_perf import ProducerPerfOptions, producer_properties
from kafkapy.tools import librdkafka_client
from kafkapy.tools.local.ports import free_port
from tests.harness.scripted.cli import kafkapy

NEEDED = ("--topic", "t", "--num-records", "1", "--throughput", "-1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--record-size", "2147483648"], "Cannot parse argument '2147483648' of option record-s"),
        (["--topic", "t"], 'Missing required argument "[num-records]"'),
        ([*NEEDED, "--producer-props", "a=b"], "Exactly one of --record-size, --payload-file and"),
        ([*NEEDED, "--record-size", "0"], "--record-size should be greater than zero."),
        ([*NEEDED, "--record-size", "1"], "Either --producer-props or --producer.config must be"),
        (
            [*NEEDED, "--record-size", "1", "--producer-props", "a=b", "c=d=e"],
            "Invalid property: c=d=e",
        ),
        ([*NEEDED, "--record-size", "1", "--producer-props", "a=b"], "No server is named"),
        (
            [*NEEDED, "--payload-file", "/none", "--bootstrap-server", "127.0.0.1:1"],
            "File does not exist or empty file provided.",
        ),
        (
            [*NEEDED, "--record-size", "1", "--warmup-records", "1"],
            "--warmup-records must be strictly fewer than the number of records",
        ),
        (
            [*NEEDED, "--record-size", "1", "--reporting-interval", "0"],
            "--reporting-interval should be greater than zero.",
        ),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = kafkapy("producer-perf", *words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


def test_a_run_without_an_acknowledgement_is_read_by_every_json_parser() -> None:
    words = ("--topic", "t", "--num-records", "0", "--record-size", "1", "--throughput", "-1")
    server = ("--bootstrap-server", f"127.0.0.1:{free_port('127.0.0.1')}")
    properties = ("--producer-props", "enable.idempotence=false")  # no wait for an id
    done = kafkapy("producer-perf", *words, *server, *properties, "--output", "json")
    (row,) = orjson.loads(done.stdout)["data"]
    assert (row["records"], row["avg_latency_ms"]) == (0, None)


class StatisticsProducer:
    """A producer that has its id after its first statistics, and acknowledges at once."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._stats_cb = config["stats_cb"]
        self._has_id = False

    def poll(self, timeout: float) -> int:
        self._has_id = True
        self._stats_cb('{"client_id": "c", "tx": 7, "eos": {"idemp_state": "Assigned"}}')
        return 0

    def produce(self, topic: str, value: bytes, on_delivery: Any) -> None:
        assert self._has_id, "the latency would contain the wait for the id"

    def flush(self) -> int:
        return 0


def test_records_are_sent_when_the_producer_has_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(librdkafka_client, "ToolProducer", StatisticsProducer)
    words = ("--topic", "t", "--num-records", "1", "--record-size", "1", "--throughput", "-1")
    done = kafkapy("producer-perf", *words, "--bootstrap-server", "b:1")
    assert (done.status, done.stderr) == (0, "")


@pytest.mark.parametrize("form", ["json", "table"])
def test_metrics_are_in_every_form(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Only the text had them. A terminal shows the table."""
    monkeypatch.setattr(librdkafka_client, "ToolProducer", StatisticsProducer)
    words = ("--topic", "t", "--num-records", "1", "--record-size", "1", "--throughput", "-1")
    show = ("--print-metrics", "--output", form)
    done = kafkapy("producer-perf", *words, "--bootstrap-server", "b:1", *show)
    if form == "json":
        (row,) = orjson.loads(done.stdout)["data"]
        assert row["metrics"] == {"producer-metrics:tx:{client-id=c}": 7}
    else:
        assert "producer-metrics:tx:{client-id=c}" in done.stdout


def test_properties_come_from_words_then_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("acks=1\nbootstrap.servers=file:1\nlinger.ms=5\n")
    options = ProducerPerfOptions(
        producer_config=str(tmp_path / "file"),
        producer_props=["bootstrap.servers=word:1"],
        transaction_duration_ms=100,
    )
    assert producer_properties(options) == {
        "client.id": "perf-producer-client",
        "acks": "1",
        "linger.ms": "5",
        "bootstrap.servers": "word:1",
        "transactional.id": "performance-producer-default-transactional-id",
    }
