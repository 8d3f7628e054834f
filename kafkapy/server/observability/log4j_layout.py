"""Kafka's log line, `[2024-10-21 12:00:00,123] INFO message (kafka.server.KafkaServer)`, and
Kafka's log files (`config/log4j.properties`)."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.common.log_text import on_one_line
from kafkapy.server.observability.log_files import HourlyFileHandler

# The TRACE of log4j has no name in Python.
_LEVELS: Final = {"WARNING": "WARN", "CRITICAL": "FATAL", "Level 5": "TRACE"}

# A logger writes to one file: that of its nearest ancestor in this table.
_FILES: Final = {
    "": "server.log",
    "kafka.authorizer.logger": "kafka-authorizer.log",
    "kafka.controller": "controller.log",
    "kafka.log.LogCleaner": "log-cleaner.log",
    "kafka.request.logger": "kafka-request.log",
    "state.change.logger": "state-change.log",
}

_BROKER_LOGGERS: Final = ("kafka", "kafkapy", "org.apache.zookeeper", "state.change.logger")


class Log4jFormatter(logging.Formatter):
    """The layout `[%d] %p %m (%c)%n` of Kafka's log4j.properties."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return f"{super().formatTime(record, '%Y-%m-%d %H:%M:%S')},{int(record.msecs):03d}"

    def format(self, record: logging.LogRecord) -> str:
        record.levelname = _LEVELS.get(record.levelname, record.levelname)
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        # Clients choose the names of groups and users, which may have line breaks.
        record.message = on_one_line(record.message)
        return super().formatMessage(record)


def configure_logging(log_dir: str = "", level: int = logging.INFO) -> None:
    """Send the broker's log to stdout in Kafka's layout; libraries only from WARN on.

    With a `log_dir`, also to Kafka's files there.

    Raises:
        ConfigError: the files cannot be written.
    """
    formatter = Log4jFormatter("[%(asctime)s] %(levelname)s %(message)s (%(name)s)")
    stdout = logging.StreamHandler(sys.stdout)
    stdout.setFormatter(formatter)
    for name, file in _FILES.items():
        logger = logging.getLogger(name)
        logger.handlers[:] = [stdout]
        logger.propagate = False
        if log_dir:
            handler = _open(Path(log_dir) / file)
            handler.setFormatter(formatter)
            logger.addHandler(handler)
    logging.getLogger().setLevel(logging.WARNING)
    for name in _BROKER_LOGGERS:
        logging.getLogger(name).setLevel(level)


def _open(file: Path) -> HourlyFileHandler:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return HourlyFileHandler(file)
    except OSError as error:
        raise ConfigError(f"kafkapy.log.dir: cannot write {file}: {error.strerror}") from error
