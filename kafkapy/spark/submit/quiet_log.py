"""Spark's log during a query: warnings on the terminal, everything in a file.

At INFO, about 200 lines of Spark's log would hide the result of a query. The file is removed if the
job succeeds or is stopped, and its path is shown if the job fails. It is rolled, because a stream
may run for weeks: at least the last 100 MB are kept.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from kafkapy.spark.submit.submit import Submission, conf_directory, property_files

JAVA_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
PROGRESS: Final = "spark.ui.showConsoleProgress"
_OPTION_VARIABLES: Final = (JAVA_OPTIONS, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_SETTINGS: Final = ("log4j", "spark.log.level")
# Spark's own log4j2-defaults.properties, except for the two appenders. The filter denies warnings
# that appear at each start on most machines, and require no action.
_CONFIG: Final = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
rootLogger.appenderRef.console.level = warn
rootLogger.appenderRef.file.ref = file
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.filter.usual.type = RegexFilter
appender.console.filter.usual.regex = .*({usual}).*
appender.console.filter.usual.onMatch = DENY
appender.console.filter.usual.onMismatch = NEUTRAL
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = {pattern}
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 100MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = {pattern}
logger.jetty.name = org.sparkproject.jetty
logger.jetty.level = warn
logger.jetty2.name = org.sparkproject.jetty.util.component.AbstractLifeCycle
logger.jetty2.level = error
logger.metastore.name = org.apache.hadoop.hive.metastore.RetryingHMSHandler
logger.metastore.level = fatal
logger.metastore2.name = org.apache.hadoop.hive.metastore.ObjectStore
logger.metastore2.level = error
logger.parquet.name = org.apache.parquet.CorruptStatistics
logger.parquet.level = error
logger.parquet2.name = parquet.CorruptStatistics
logger.parquet2.level = error
"""
_PATTERN: Final = "%d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex"
_USUAL_WARNINGS: Final = (
    "Your hostname, .* resolves to a loopback address",
    "Set SPARK_LOCAL_IP if you need to bind to another address",
    "Unable to load native-hadoop library",
    "The data source kafkapy replaced a .* registered data source",  # by each read and write
)
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NO_FAILURE: Final = (0, *(128 + each for each in _SIGNALS))  # done, or stopped by the user
_PR_SET_PDEATHSIG: Final = 1


def has_own_log(submission: Submission, spark_home: Path, environ: Mapping[str, str]) -> bool:
    """Whether the user requests Spark's log, has a log4j setting, or the job logs elsewhere."""
    if {"--verbose", "-v"}.intersection(submission.options):
        return True
    if "cluster" in submission.values("--deploy-mode") or submission.values("--remote"):
        return True
    files = property_files(submission, spark_home, environ)
    texts = [*submission.options, *(environ.get(name, "") for name in _OPTION_VARIABLES)]
    texts += [path.read_text(errors="replace") for path in files if path.is_file()]
    if any(setting in text for text in texts for setting in _SETTINGS):
        return True
    return any(conf_directory(spark_home, environ).glob("log4j2.*"))


class QuietLog(NamedTuple):
    """The directory of one job's log."""

    directory: Path

    @property
    def file(self) -> Path:
        return self.directory / "spark.log"

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment of a spark-submit that logs to this directory."""
        option = f"-Dlog4j2.configurationFile={self._config.as_uri()}"
        given = environ.get(JAVA_OPTIONS)
        return {**environ, JAVA_OPTIONS: f"{given} {option}" if given else option}

    def close(self, status: int) -> bool:
        """Remove the log, unless it is needed. Returns whether it still exists."""
        if status in _NO_FAILURE or not self.file.exists():
            shutil.rmtree(self.directory, ignore_errors=True)
            return False
        self._config.unlink(missing_ok=True)
        return True

    @property
    def _config(self) -> Path:
        return self.directory / "log4j2.properties"

    def write_config(self) -> None:
        """Write the log4j properties."""
        usual = "|".join(_USUAL_WARNINGS)
        text = _CONFIG.format(file=self.file, pattern=_PATTERN, usual=usual)
        self._config.write_text(text)


def open_log() -> QuietLog:
    """Create a directory, which only its owner may enter, with the log4j properties.

    Raises:
        OSError: the directory cannot be created.
    """
    log = QuietLog(Path(tempfile.mkdtemp(prefix="kafkapy-spark-log-")))
    log.write_config()
    return log


def run(words: list[str], environ: Mapping[str, str]) -> int:
    """Run spark-submit as a child, which gets this process's signals and ends with it. Returns its
    exit status in the form of shells.
    """
    pid = os.fork()
    if pid == 0:
        _exec(words, environ)
    for number in _SIGNALS:
        signal.signal(number, lambda number, _: os.kill(pid, number))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if status >= 0 else 128 - status


def _exec(words: list[str], environ: Mapping[str, str]) -> NoReturn:
    try:
        if hasattr(os, "pidfd_open"):  # Linux
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        os.execve(words[0], words, environ)
    finally:
        os._exit(127)
