"""The API of scripts: `kafkapy.spark.read(spark)` returns the topics of `--from`.

`kafkapy spark-submit` writes the topics and servers into the Spark conf, which reaches the driver
in every deploy mode. Options in a call take precedence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkapy.client.consumer_names import CONSUMER_ONLY
from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming import DataStreamReader, DataStreamWriter

    from kafkapy.spark.values.value_schema import ValueSchema

FORMAT: Final = "kafkapy"
CONF: Final = "spark.kafkapy."
FROM: Final = CONF + "from"
COLUMNS: Final = CONF + "columns"
TO: Final = CONF + "to"
CHECKPOINT: Final = CONF + "checkpoint"
SQL: Final = CONF + "sql"
SCHEMA: Final = CONF + "schema"
SCHEMA_REGISTRY: Final = CONF + "schema.registry"
FROM_SUBJECT: Final = CONF + "from.subject"
FROM_MESSAGE: Final = CONF + "from.message"
FROM_KEY_SUBJECT: Final = CONF + "from.key.subject"
FROM_KEY_MESSAGE: Final = CONF + "from.key.message"
KEEP_CORRUPT_RECORDS: Final = CONF + "keep.corrupt.records"
TO_SUBJECT: Final = CONF + "to.subject"
TO_MESSAGE: Final = CONF + "to.message"
TO_KEY_SUBJECT: Final = CONF + "to.key.subject"
TO_KEY_MESSAGE: Final = CONF + "to.key.message"
ONCE: Final = CONF + "once"
METRICS_PORT: Final = CONF + "metrics.port"
BATCH_LINES: Final = CONF + "batch.lines"
PROPERTY: Final = CONF + "kafka."
USER_INFO: Final = "basic.auth.user.info"
"""The login at the schema registry. The files of Confluent's clients have these properties together
with those of the brokers."""

_REGISTRY_PROPERTIES: Final = (USER_INFO, "basic.auth.credentials.source", "schema.registry.url")


def register(spark: SparkSession) -> None:
    """Register `format("kafkapy")`, which is faster than Spark's own search for it."""
    from kafkapy.spark.source.datasource import KafkapyDataSource

    spark.dataSource.register(KafkapyDataSource)


def read(spark: SparkSession, columns: Sequence[str] = (), **options: Any) -> DataFrame:
    """The topics of `--from` as a table, by default from the earliest offset to the latest.

    `columns` are the columns that the job needs; Spark does not pass these to a Python source. The
    default is `--columns`, else all.

    Raises:
        ConfigError: neither `--from` nor an option names a topic; or a column does not exist.
    """
    register(spark)
    reader = spark.read.format(FORMAT).options(**_source(spark, options))
    return _load(spark, reader, columns)


def read_stream(spark: SparkSession, columns: Sequence[str] = (), **options: Any) -> DataFrame:
    """The topics of `--from` as a stream, by default from the earliest offset; see `read`."""
    register(spark)
    settings = {"startingOffsets": "earliest"} | _source(spark, options)
    reader = spark.readStream.format(FORMAT).options(**settings)
    return _load(spark, reader, columns)


def write(frame: DataFrame, **options: Any) -> None:
    """Append rows to the topic of `--to`, or to the topic in their column `topic`.

    The columns are key, value (required), topic, partition and headers, as for Spark's Kafka sink.
    """
    spark = frame.sparkSession
    register(spark)
    frame.write.format(FORMAT).options(**_sink(spark, options)).mode("append").save()


def write_stream(frame: DataFrame, **options: Any) -> DataStreamWriter:
    """A writer of the stream to the topic of `--to`, with the checkpoint of `--checkpoint`."""
    spark = frame.sparkSession
    register(spark)
    checkpoint = checkpoint_of(spark)
    # First: Spark ignores the case of options, and the last one takes precedence.
    settings = {} if checkpoint is None else {"checkpointLocation": checkpoint}
    settings |= _sink(spark, options)
    return frame.writeStream.format(FORMAT).options(**settings)


def decode_values(
    frame: DataFrame,
    subject: str | None = None,
    *,
    registry: str | None = None,
    message: str | None = None,
    keep_corrupt_records: bool = False,
) -> DataFrame:
    """The values of a schema registry's serializers as columns, by the latest schema of a subject.
    A value that is not a record stays the column `value`.

    Args:
        frame: rows of `read` or `read_stream`. With the column `headers`, a schema's id is also
            found in a header, which is removed.
        subject: by default `--from-subject`.
        registry: the registries' URLs, comma-separated; by default those of `--schema-registry`.
        message: the name of a Protobuf message; by default `--from-message`, else the first.
        keep_corrupt_records: add the column `_corrupt_record` for values that cannot be decoded,
            which otherwise end the job.

    Raises:
        ConfigError: no registry or subject is named, or the schema has a type without columns.
        RegistryError: no registry answers, or it does not have the subject.
    """
    from kafkapy.spark.values import decoding

    names = FROM_SUBJECT, FROM_MESSAGE
    schema = _latest_schema(frame.sparkSession, registry, subject, message, names)
    keeps = keep_corrupt_records or conf_of(frame.sparkSession, KEEP_CORRUPT_RECORDS) == "true"
    return decoding.decode_values(frame, schema, keeps)


def decode_keys(
    frame: DataFrame,
    subject: str | None = None,
    *,
    registry: str | None = None,
    message: str | None = None,
    keep_corrupt_records: bool = False,
) -> DataFrame:
    """The keys of a schema registry's serializers, by the latest schema of a subject. The column
    `key` becomes a struct for records, and otherwise a number, a text and so on.

    Arguments and errors are those of `decode_values`. The defaults are `--from-key-subject` and
    `--from-key-message`, and keys that cannot be decoded are kept in the column `_corrupt_key`.
    """
    from kafkapy.spark.values import decoding

    names = FROM_KEY_SUBJECT, FROM_KEY_MESSAGE
    schema = _latest_schema(frame.sparkSession, registry, subject, message, names)
    keeps = keep_corrupt_records or conf_of(frame.sparkSession, KEEP_CORRUPT_RECORDS) == "true"
    return decoding.decode_keys(frame, schema, keeps)


def encode_values(
    frame: DataFrame,
    subject: str | None = None,
    *,
    registry: str | None = None,
    message: str | None = None,
) -> DataFrame:
    """Columns as values of a schema registry's serializers, by the latest schema of a subject: for
    `write` and `write_stream`. The columns key, topic, partition and headers stay as they are.

    Args:
        frame: rows with the schema's fields as columns. Fields with a default may be left out.
        subject: by default `--to-subject`.
        registry: the registries' URLs, comma-separated; by default those of `--schema-registry`.
        message: the name of a Protobuf message; by default `--to-message`, else the first.

    Raises:
        ConfigError: no registry or subject is named, or the columns are not those of the schema.
        RegistryError: no registry answers, or it does not have the subject.
    """
    from kafkapy.spark.values import encoding

    names = TO_SUBJECT, TO_MESSAGE
    schema = _latest_schema(frame.sparkSession, registry, subject, message, names)
    return encoding.encode_values(frame, schema)


def encode_keys(
    frame: DataFrame,
    subject: str | None = None,
    *,
    registry: str | None = None,
    message: str | None = None,
) -> DataFrame:
    """The column `key` as keys of a schema registry's serializers, by the latest schema of a
    subject. It must be a struct with the schema's fields, or a number, a text and so on if the
    schema is not a record. A null stays null.

    Arguments and errors are those of `encode_values`. The defaults are `--to-key-subject` and
    `--to-key-message`.
    """
    from kafkapy.spark.values import encoding

    names = TO_KEY_SUBJECT, TO_KEY_MESSAGE
    schema = _latest_schema(frame.sparkSession, registry, subject, message, names)
    return encoding.encode_keys(frame, schema)


def _latest_schema(
    spark: SparkSession,
    urls: str | None,
    subject: str | None,
    message: str | None,
    names: tuple[str, str],
) -> ValueSchema:
    """The latest schema of a subject. `names` are the Spark confs with the default subject and the
    default message."""
    from kafkapy.spark.values.value_schema import latest_schema

    urls = urls or conf_of(spark, SCHEMA_REGISTRY)
    subject = subject or conf_of(spark, names[0])
    message = message or conf_of(spark, names[1])
    if urls is None:
        raise ConfigError(
            "No schema registry: run the script with 'kafkapy spark-submit --schema-registry URL', "
            "or give the argument registry"
        )
    if subject is None:
        raise ConfigError("No subject: give the argument subject, such as 'orders-value'")
    return latest_schema(urls, subject, message, conf_of(spark, PROPERTY + USER_INFO))


def checkpoint_of(spark: SparkSession) -> str | None:
    """The directory of `--checkpoint`."""
    return conf_of(spark, CHECKPOINT)


def target_of(spark: SparkSession) -> str | None:
    """The topic of `--to`."""
    return conf_of(spark, TO)


def _load(
    spark: SparkSession, reader: DataFrameReader | DataStreamReader, columns: Sequence[str]
) -> DataFrame:
    """Load these columns, or those of `--columns`, or all if none are named."""
    from kafkapy.spark.source.source_columns import schema_of

    names = columns or comma_separated(conf_of(spark, COLUMNS) or "")
    return (reader.schema(schema_of(names)) if names else reader).load()


def _source(spark: SparkSession, options: dict[str, Any]) -> dict[str, Any]:
    given = {name.lower() for name in options}
    settings = _properties(spark)
    topics = conf_of(spark, FROM)
    if not given & {"subscribe", "subscribepattern", "assign"}:
        if topics is None:
            raise ConfigError(
                "No topic to read: run the script with 'kafkapy spark-submit --from TOPICS', "
                "or give the option subscribe"
            )
        settings["subscribe"] = topics
    return settings | options


def _sink(spark: SparkSession, options: dict[str, Any]) -> dict[str, Any]:
    # The file of `--command-config` may have properties of the source, such as `isolation.level`.
    settings = {
        name: value
        for name, value in _properties(spark).items()
        if name.removeprefix("kafka.") not in CONSUMER_ONLY
    }
    topic = target_of(spark)
    if topic is not None:
        settings["topic"] = topic
    return settings | options


def _properties(spark: SparkSession) -> dict[str, Any]:
    """The client properties of the command, as `kafka.*` options."""
    return {
        name.removeprefix(CONF): value
        for name, value in spark.conf.getAll.items()
        if name.startswith(PROPERTY) and name.removeprefix(PROPERTY) not in _REGISTRY_PROPERTIES
    }


def conf_of(spark: SparkSession, name: str) -> str | None:
    """A setting of the command in the Spark conf, such as `SQL`."""
    value: str | None = spark.conf.get(name, None)
    return value
