"""The script that `kafkapy spark-submit` runs for a user's `transform(df) -> df`, or for `--sql`.

With `--checkpoint` it is a stream that runs until it is stopped or, with `--once`, to the end of
the topics. Without, it is a batch over the present records. The result is written to the topic of
`--to`, or printed.
"""

from __future__ import annotations

import logging
import re
import runpy
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.spark.source.progress import Metrics, MicroBatch, format_line, report_progress
from kafkapy.spark.source.shaping import parse_json_rows, to_json_rows
from kafkapy.spark.source.source_columns import HEADERS, HIDDEN_HEADERS, default_columns
from kafkapy.spark.submit import session

Transform = Callable[[DataFrame], DataFrame]

VIEW: Final = "records"
"""The view in the queries of `--sql`."""


def main(arguments: Sequence[str]) -> None:
    """Run the `transform` of the script in the first argument, or the query of `--sql`.

    Raises:
        ConfigError: Spark does not start, or the command has neither a script nor a query.
    """
    if not arguments:
        spark = start_session("kafkapy-sql")
        run(spark, sql_transform(spark))
        return
    script = Path(arguments[0])
    if not script.exists():  # cluster mode: shipped with --files into the working directory
        script = Path(script.name)
    sys.argv = [str(script), *arguments[1:]]
    sys.path[0] = str(script.parent)  # as if Python had run the script directly
    spark = start_session(script.stem)
    run(spark, runpy.run_path(str(script))["transform"])


def start_session(name: str) -> SparkSession:
    """
    Raises:
        ConfigError: Spark does not start, for example because of a wrong `--master`.
    """
    is_new = SparkContext._active_spark_context is None
    try:
        spark = SparkSession.builder.appName(name).getOrCreate()
    except Py4JJavaError as error:
        raise ConfigError(f"Spark does not start: {_java_fault(error)}") from error
    if is_new:  # pyspark's handler prints tracebacks; the JVM gets Ctrl-C too, and ends the job
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return spark


def sql_transform(spark: SparkSession) -> Transform:
    """The query of `--sql`. The topics are the view `records`; one topic also has its own name.

    Raises:
        ConfigError: the command has no query.
    """
    query = session.conf_of(spark, session.SQL)
    if query is None:
        raise ConfigError("There is neither a script nor --sql")

    def transform(frame: DataFrame) -> DataFrame:
        topic = session.conf_of(spark, session.FROM) or VIEW
        for name in {VIEW, topic}:
            if re.fullmatch(r"[\w.-]+", name):
                frame.createOrReplaceTempView(f"`{name}`")
        return spark.sql(query)

    return transform


def run(spark: SparkSession, transform: Transform) -> None:
    """Read, transform, write."""
    is_stream = session.checkpoint_of(spark) is not None
    frame = transform(_records(spark, session.read_stream if is_stream else session.read))
    target = session.target_of(spark)
    if is_stream:
        stream(spark, frame, target is not None)
        return
    if target is not None:
        session.write(to_sink_rows(frame))
    else:
        frame.show(truncate=False)


def _records(spark: SparkSession, read: Callable[..., DataFrame]) -> DataFrame:
    """The records, with the columns of their schemas."""
    has_key_schema, has_schema = (
        session.conf_of(spark, name) is not None
        for name in (session.FROM_KEY_SUBJECT, session.FROM_SUBJECT)
    )
    columns: Sequence[str] = ()
    if (has_key_schema or has_schema) and session.conf_of(spark, session.COLUMNS) is None:
        columns = default_columns(include_headers=True)  # which may have the ids of the schemas
    records = read(spark, columns)
    if columns:
        records = records.withColumnRenamed(HEADERS, HIDDEN_HEADERS)
    if has_key_schema:
        records = session.decode_keys(records)
    ddl = session.conf_of(spark, session.SCHEMA)
    if has_schema:
        records = session.decode_values(records)
    elif ddl is not None:
        records = parse_json_rows(records, ddl)
    return records.drop(HIDDEN_HEADERS) if columns else records


def to_sink_rows(frame: DataFrame) -> DataFrame:
    """The rows for the sink: by the schemas of `--to-key-subject` and `--to-subject`. Without the
    latter, values are JSON."""
    if session.conf_of(frame.sparkSession, session.TO_KEY_SUBJECT) is not None:
        frame = session.encode_keys(frame)
    if session.conf_of(frame.sparkSession, session.TO_SUBJECT) is not None:
        return session.encode_values(frame)
    return to_json_rows(frame)


def stream(spark: SparkSession, frame: DataFrame, has_target: bool) -> None:
    """Run the stream to its end, and report each micro-batch to the command's terminal and to
    Prometheus.
    """
    if has_target:
        writer = session.write_stream(to_sink_rows(frame))
    else:
        writer = frame.writeStream.format("console")
        writer = writer.option("checkpointLocation", session.checkpoint_of(spark))
    if session.conf_of(spark, session.ONCE) == "true":
        writer = writer.trigger(availableNow=True)
    reports: list[Callable[[MicroBatch], object]] = []
    jvm = SparkContext._jvm
    if jvm is not None and session.conf_of(spark, session.BATCH_LINES) == "true":
        errors = jvm.java.lang.System.err  # Spark passes a script's stderr to its stdout
        reports.append(lambda batch: batch.rows and errors.println(format_line(batch)))
    port = session.conf_of(spark, session.METRICS_PORT)
    if port is not None:
        metrics = Metrics()
        reports.append(metrics)
        metrics.serve(int(port))
    report_progress(writer.start(), reports)


def refusal(error: PySparkException | Py4JJavaError, *, is_query: bool) -> str | None:
    """The error as one line; None for a fault of the user's script."""
    kafkapy_errors = re.findall(r"^kafkapy\.(?:\w+\.)+\w+: (.*)$", str(error), re.MULTILINE)
    if kafkapy_errors:
        return str(kafkapy_errors[-1])
    if not is_query:
        return None
    return _java_fault(error) if isinstance(error, Py4JJavaError) else _first_line(str(error))


def _java_fault(error: Py4JJavaError) -> str:
    """The class, without its package, and the message of a Java exception."""
    return re.sub(r"^(\w+\.)+", "", _first_line(error.java_exception.toString()))


def _first_line(text: str) -> str:
    """The first line that is not empty: the text of a syntax error begins with an empty one."""
    return next(iter(text.strip().splitlines()), "")


def fail(text: str) -> NoReturn:
    """End with one line on the JVM's stderr, because Spark passes a script's stderr to its
    stdout.
    """
    jvm = SparkContext._jvm  # also if the start of the context failed
    if jvm is None:
        sys.exit(f"kafkapy: {text}")
    jvm.java.lang.System.err.println(f"kafkapy: {text}")
    sys.exit(1)


if __name__ == "__main__":
    words = sys.argv[1:]
    if not words:
        # Spark would also log the error of a query to stderr, as JSON.
        PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        main(words)
    except KafkapyError as error:
        fail(str(error))
    except (PySparkException, Py4JJavaError) as error:
        text = refusal(error, is_query=not words)
        if text is None:
            raise
        fail(text)
