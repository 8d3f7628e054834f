"""`kafkapy spark-submit`: Spark's spark-submit, with topics as sources and sinks.

All flags of spark-submit are passed on. This command's own flags may stand anywhere before the
script.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    CommonOptions,
    flag,
    is_given,
    properties_of,
    value,
    values,
)
from kafkapy.common.comma_separated import comma_separated

_FROM_SUBJECTS: Final = ("from_subject", "from_key_subject")
_TO_SUBJECTS: Final = ("to_subject", "to_key_subject")
# Options that have an effect only with another one.
_NEEDED: Final = (
    ("from_message", "from_subject"),
    ("from_key_message", "from_key_subject"),
    ("to_message", "to_subject"),
    ("to_key_message", "to_key_subject"),
    *((name, "schema_registry") for name in (*_FROM_SUBJECTS, *_TO_SUBJECTS)),
    *((name, "from_") for name in _FROM_SUBJECTS),
    *((name, "to") for name in _TO_SUBJECTS),
)
# The columns that options read.
_READ: Final = (("schema", "value"), ("from_subject", "value"), ("from_key_subject", "key"))


@dataclass
class SparkSubmitOptions(CommonOptions):
    """This command's own options, and spark-submit's words."""

    from_: str | None = value(
        "The topics to read, comma-separated: kafkapy.spark.read(spark) returns them.",
        name="from",
        metavar="TOPICS",
    )
    columns: str | None = value(
        "The columns of the topics that the job needs, comma-separated; others are not read.",
        metavar="NAMES",
    )
    to: str | None = value("The topic that kafkapy.spark.write(df) writes.", metavar="TOPIC")
    checkpoint: str | None = value(
        "The directory for a stream's offsets; runs a script's transform(df) as a stream.",
        metavar="DIR",
    )
    sql: str | None = value(
        "A query over the view 'records' instead of a script; one topic has its own name too.",
        metavar="SELECT",
    )
    schema: str | None = value(
        "The fields of JSON values, which become columns, as Spark DDL: 'id INT, at TIMESTAMP'.",
        metavar="DDL",
    )
    schema_registry: str | None = value(
        "The schema registries that have the subjects.", metavar="URL,..."
    )
    from_subject: str | None = value(
        "The subject of the topics' values: the fields of its latest schema become columns.",
        metavar="SUBJECT",
    )
    from_message: str | None = value(
        "The Protobuf message of the topics' values. The default is the first of the schema.",
        metavar="NAME",
    )
    from_key_subject: str | None = value(
        "The subject of the topics' keys: its latest schema decodes the column key.",
        metavar="SUBJECT",
    )
    from_key_message: str | None = value(
        "The Protobuf message of the topics' keys. The default is the first of the schema.",
        metavar="NAME",
    )
    keep_corrupt_records: bool = flag(
        "Keep values that cannot be decoded in the column _corrupt_record, and keys in"
        " _corrupt_key, instead of ending the job."
    )
    to_subject: str | None = value(
        "The subject whose latest schema the written values have. The default is JSON without one.",
        metavar="SUBJECT",
    )
    to_message: str | None = value(
        "The Protobuf message of the written values. The default is the first of the schema.",
        metavar="NAME",
    )
    to_key_subject: str | None = value(
        "The subject whose latest schema encodes the column key of the written rows.",
        metavar="SUBJECT",
    )
    to_key_message: str | None = value(
        "The Protobuf message of the written keys. The default is the first of the schema.",
        metavar="NAME",
    )
    once: bool = flag("With --checkpoint: run to the end of the topics, then stop.")
    metrics_port: int | None = value(
        "Serve rows, rate and lag of the stream to Prometheus on this port of the loopback.",
        metavar="PORT",
    )
    bootstrap_server: str | None = value(
        "The brokers to connect to first. REQUIRED with --from and --to.", metavar="HOST:PORT,..."
    )
    command_config: str | None = value(
        "A property file for the connection: security and timeouts.", metavar="FILE"
    )
    words: list[str] = values(
        "Options of spark-submit (spark-submit --help lists them), the script, and its own words.",
        metavar="[SPARK-SUBMIT OPTIONS] SCRIPT [WORDS]",
    )


def run(options: SparkSubmitOptions, env: Environment) -> ExitStatus:
    """Replace this process by spark-submit, or wait for spark-submit if its log goes to a file.

    Raises:
        UsageError: the script is missing, or options do not match, such as topics without brokers.
        ConfigError: the property file, the URL of the registry, the script or pyspark cannot be
            used.
    """
    from kafkapy.spark.submit import quiet_log, session, submit
    from kafkapy.spark.submit.secret_properties import properties_file
    from kafkapy.spark.workers import fork_server
    from kafkapy.spark.workers.kept_files import cache_dir

    submission = submit.split(options.words)
    _check(options, submission.script, bool(submission.options))
    properties = properties_of(options.command_config)
    if options.bootstrap_server:
        properties["bootstrap.servers"] = options.bootstrap_server
    job_conf = submit.JobConf(
        source=options.from_,
        columns=options.columns,
        target=options.to,
        checkpoint=options.checkpoint,
        properties=properties,
        sql=options.sql,
        schema=options.schema,
        schema_registry=options.schema_registry,
        from_subject=options.from_subject,
        from_message=options.from_message,
        from_key_subject=options.from_key_subject,
        from_key_message=options.from_key_message,
        keep_corrupt_records=options.keep_corrupt_records,
        to_subject=options.to_subject,
        to_message=options.to_message,
        to_key_subject=options.to_key_subject,
        to_key_message=options.to_key_message,
        once=options.once,
        metrics_port=options.metrics_port,
    )
    spark_home = submit.find_spark_home(os.environ)
    submit.check_java(os.environ)
    is_interactive = env.stderr.isatty()
    is_quiet = (is_interactive or options.sql is not None) and not quiet_log.has_own_log(
        submission, spark_home, os.environ
    )
    if is_interactive and is_quiet:
        name = session.BATCH_LINES if options.checkpoint else quiet_log.PROGRESS
        submission = submission.with_conf(name, "true")
    secret_properties = submit.properties_of(submission, job_conf, spark_home, os.environ)
    file = None if secret_properties is None else properties_file(secret_properties)
    words = submit.command_line(submission, job_conf, spark_home, cache_dir(), file)
    env.stdout.flush()
    environ = submit.environment(os.environ, submission, spark_home, cache_dir())
    if submit.uses_worker_python(words, environ, cache_dir()):
        started = fork_server.start(environ)
        if started is not None:
            environ |= started.environ
    if not is_quiet:
        os.execve(words[0], words, environ)
    return _run_quietly(words, environ, options, env)


def _run_quietly(
    words: list[str], environ: dict[str, str], options: SparkSubmitOptions, env: Environment
) -> ExitStatus:
    """Wait for the end of spark-submit. If it fails, keep its log and print the path."""
    from kafkapy.spark.submit import quiet_log

    log = quiet_log.open_log()
    if env.stderr.isatty():
        topics = f" reads {options.from_}" if options.from_ else " starts"
        env.warn(f"Spark{topics}. Its log is in {log.file} until it ends; --verbose shows it here.")
    status = quiet_log.run(words, log.environ(environ))
    if log.close(status):
        env.warn(f"All of Spark's log is in {log.file}")
    sys.exit(status)


def _check(options: SparkSubmitOptions, script: str | None, has_other_words: bool) -> None:
    """
    Raises:
        UsageError: options cannot be combined, or a required option is missing.
        ConfigError: the URL of the schema registry is wrong.
    """
    if options.sql is not None:
        if script is not None:
            raise UsageError(f"--sql takes the place of a script; {script} is one")
        if not options.from_:
            raise UsageError("--from is required with --sql")
    elif script is None and not has_other_words:
        raise UsageError("Name the script to run")
    if (options.from_ or options.to) and not options.bootstrap_server:
        raise UsageError("--bootstrap-server is required with --from and --to")
    if options.columns is not None:
        if not options.from_:
            raise UsageError("--columns names columns of the topics: it needs --from")
        for name, column in _READ:
            if is_given(options, name) and column not in comma_separated(options.columns):
                raise UsageError(
                    f"{_flag(name)} reads the column {column}, which --columns leaves out"
                )
    _check_registry(options)
    for name in ("once", "metrics_port"):
        if is_given(options, name) and not options.checkpoint:
            raise UsageError(f"{_flag(name)} is for streams: it needs --checkpoint")
    if options.metrics_port is not None and not 0 < options.metrics_port <= 65535:
        raise UsageError(f"--metrics-port must be 1 to 65535, not {options.metrics_port}")


def _check_registry(options: SparkSubmitOptions) -> None:
    """
    Raises:
        UsageError: options of schemas cannot be combined, or one is missing.
        ConfigError: the URL is wrong.
    """
    for name, needed in _NEEDED:
        if is_given(options, name) and not is_given(options, needed):
            raise UsageError(f"{_flag(name)} needs {_flag(needed)}")
    if options.from_subject is not None and options.schema is not None:
        raise UsageError("--schema is for JSON values without a schema: it excludes --from-subject")
    reads_schema = any(is_given(options, name) for name in _FROM_SUBJECTS)
    if options.keep_corrupt_records and not reads_schema:
        raise UsageError("--keep-corrupt-records needs --from-subject or --from-key-subject")
    has_subject = reads_schema or any(is_given(options, name) for name in _TO_SUBJECTS)
    if options.schema_registry is not None and options.sql is not None and not has_subject:
        raise UsageError("--schema-registry needs a subject, such as --from-subject")
    if options.schema_registry is not None:
        from kafkapy.schemas.registry_client import registry_client

        registry_client(options.schema_registry)  # Spark takes seconds to start


def _flag(name: str) -> str:
    return f"--{name.rstrip('_').replace('_', '-')}"


def _spark_flags() -> frozenset[str]:
    from kafkapy.spark.submit.submit import FLAGS

    return FLAGS


COMMAND: Final = Command(
    "spark-submit",
    SparkSubmitOptions,
    run,
    help="Run a PySpark script or a query with topics as sources and sinks.",
    operands="words",
    verbatim=True,
    foreign_flags=_spark_flags,
    groups={
        "What to run": "sql schema from columns to",
        "Keys and values with schemas": (
            "schema-registry from-subject from-message from-key-subject from-key-message"
            " keep-corrupt-records to-subject to-message to-key-subject to-key-message"
        ),
        "Streams": "checkpoint once metrics-port",
    },
    examples={
        "Query a topic; its records are the view 'records'.": (
            "{B} --from orders --sql 'SELECT count(*) FROM records'"
        ),
        "Query JSON values by their fields.": (
            "{B} --from orders --schema 'user STRING, n INT' --sql 'SELECT user, sum(n) FROM"
            " records GROUP BY user'"
        ),
        "Run a script whose transform(df) makes the rows of another topic.": (
            "{B} --from orders --to totals job.py"
        ),
        "Run it as a stream, with options of Spark.": (
            "--master 'local[2]' {B} --from orders --to totals --checkpoint /tmp/totals job.py"
        ),
    },
)
