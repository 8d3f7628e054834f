"""Jobs of `scripts/conformance --spark` through ours alone: what Spark's own connector gave.

`tests/data/spark_jobs.txt` is written there, a line a job. Left out here is what other tests of
this folder hold, and what takes long.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.spark_jobs import JOBS, Bench, brief, outcome
from tests.harness.security.secure_broker import SecureBroker

RECORD = Path(__file__).parents[1] / "data" / "spark_jobs.txt"
GIVEN = dict(line.split(": ", 1) for line in RECORD.read_text().splitlines())
"""What the connector gave."""

LEFT_OUT = {
    "a_query_with_filters",
    "a_stream_from_topic_to_topic",
    "a_stream_and_its_restarts",
    "a_topic_lost_between_runs",
    "new_partitions",
    "new_topics_of_a_pattern",
    "records_lost_between_runs",
}


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    scratch = tmp_path_factory.mktemp("parity")
    with SecureBroker(scratch / "broker", {"log.retention.ms": "-1"}) as broker:
        servers, secure = broker.bootstrap_servers, broker.spark_options()
        made = Bench(spark, "kafkapy", servers, scratch, secure=secure)
        yield made
        made.topics.clear()  # Spark keeps the functions of its streams, and with them the bench


@pytest.mark.parametrize("name", [name for name in JOBS if name not in LEFT_OUT])
def test_it_gives_what_the_connector_gave(bench: Bench, name: str) -> None:
    bench.topics.clear()
    assert brief(outcome(JOBS[name], bench)) == GIVEN[name]


def test_every_job_was_recorded() -> None:
    assert GIVEN.keys() == JOBS.keys()
