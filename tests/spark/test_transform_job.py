"""transform_job: a user's `transform(df)` between two topics."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

import kafkapy.spark
from kafkapy.client.batch_producer import DeliveryError
from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.spark.source.offsets import DataLossError
from kafkapy.spark.submit.transform_job import main, refusal, run, sql_transform
from tests.harness.spark.spark_topics import Topic
from tests.harness.spark.spark_wiring import Wire

MakeTopic = Callable[..., Topic]

SCRIPT = """
import sys
from beside import WORDS

def transform(df):
    return df.selectExpr(f"'{WORDS} {sys.argv[1]}' AS text")
"""


def test_a_script_runs_as_if_it_had_been_called(
    spark: SparkSession,
    make_topic: MakeTopic,
    wire: Wire,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = make_topic()
    source.write(1)
    wire(source=source.name, servers=source.servers)
    (tmp_path / "beside.py").write_text("WORDS = 'from its own folder, with'\n")
    (tmp_path / "job.py").write_text(SCRIPT)
    monkeypatch.setattr(sys, "argv", ["transform_job.py"])
    monkeypatch.setattr(sys, "path", ["the folder of transform_job", *sys.path])
    main([str(tmp_path / "job.py"), "arguments"])
    assert "from its own folder, with arguments" in capsys.readouterr().out
    assert "the folder of transform_job" not in sys.path


def test_a_transform_of_a_batch(spark: SparkSession, make_topic: MakeTopic, wire: Wire) -> None:
    source, target = make_topic(), make_topic()
    source.write(6)
    wire(source=source.name, target=target.name, servers=source.servers)
    run(spark, lambda frame: frame.where("offset >= 4").select("value"))
    assert kafkapy.spark.read(spark, subscribe=target.name).count() == 2


def test_a_transform_is_shown_without_a_target(
    spark: SparkSession, make_topic: MakeTopic, wire: Wire, capsys: pytest.CaptureFixture[str]
) -> None:
    source = make_topic()
    source.write(3)
    wire(source=source.name, servers=source.servers)
    run(spark, lambda frame: frame.selectExpr("cast(value AS STRING) AS text"))
    assert "value 2" in capsys.readouterr().out


def test_sql_over_topics_as_views(
    spark: SparkSession, make_topic: MakeTopic, wire: Wire, capsys: pytest.CaptureFixture[str]
) -> None:
    source = make_topic()
    source.write(3)
    by_name = f"SELECT max(offset) + 40 AS last FROM `{source.name}`, (SELECT 1 FROM records)"
    wire(source=source.name, servers=source.servers, sql=by_name)
    run(spark, sql_transform(spark))
    assert "42" in capsys.readouterr().out


def test_sql_that_nobody_wired(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="neither a script nor --sql"):
        sql_transform(spark)


def test_what_is_wrong_is_one_line() -> None:
    refused = PySparkException(
        "Failed to generate partitions: Traceback (most recent call last):\n  File x, line 1\n"
        "kafkapy.common.errors.ApiError: This cluster does not have a\n SQLSTATE: 38000"
    )
    assert refusal(refused, is_query=False) == "This cluster does not have a"
    unresolved = PySparkException("[UNRESOLVED_COLUMN] nix cannot be resolved.\n'Project ['nix]")
    assert refusal(unresolved, is_query=True) == "[UNRESOLVED_COLUMN] nix cannot be resolved."
    assert refusal(unresolved, is_query=False) is None  # the script's own fault keeps its traceback


def test_a_syntax_error_is_one_line(spark: SparkSession) -> None:
    """Spark's text begins with an empty line, which was the whole message."""
    with pytest.raises(ParseException) as caught:
        spark.sql("SELEC 1")
    found = refusal(caught.value, is_query=True)
    assert found is not None
    assert found.startswith("[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'")


def test_a_checkpoint_that_cannot_be_made_is_one_line(
    spark: SparkSession, make_topic: MakeTopic, wire: Wire, tmp_path: Path
) -> None:
    """Java's exceptions for files ended a query with a traceback."""
    source = make_topic()
    file = tmp_path / "checkpoint"
    file.touch()
    wire(source=source.name, servers=source.servers, checkpoint=str(file))
    with pytest.raises(Py4JJavaError) as caught:
        run(spark, lambda frame: frame)
    assert refusal(caught.value, is_query=True) == (
        f"FileAlreadyExistsException: Destination exists and is not a directory: {file}"
    )
    assert refusal(caught.value, is_query=False) is None


@pytest.mark.parametrize("error", [DataLossError, DeliveryError])
def test_lost_offsets_and_unwritten_rows_are_one_line(error: type[KafkapyError]) -> None:
    """Of --sql only the first line was shown, which does not name the offsets or the topic."""
    last = traceback.format_exception_only(error("t-0 is gone; offsets 0 to 3 were not read"))[-1]
    failed = PySparkException(f"[FAILED] Failed when planning:\nTraceback:\n{last} SQLSTATE: 38000")
    for is_query in (True, False):
        assert refusal(failed, is_query=is_query) == "t-0 is gone; offsets 0 to 3 were not read"
