"""The broker's log has Kafka's layout, so that tools which read Kafka's logs read ours."""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.controller.state_change_log import TRACE
from kafkapy.server.observability.log4j_layout import _BROKER_LOGGERS, _FILES, configure_logging

LINE = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) .* \([\w.]+\)"
)


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """The broker's output on stdout once its logging is configured."""
    names = (*_FILES, *_BROKER_LOGGERS)
    loggers = [logging.getLogger(name) for name in dict.fromkeys(names)]
    before = [(each, each.level, each.handlers[:], each.propagate) for each in loggers]
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    logging.getLogger().setLevel(logging.DEBUG)
    configure_logging()
    yield stream
    for logger, level, handlers, propagate in before:
        for handler in set(logger.handlers) - set(handlers):
            handler.close()
        logger.setLevel(level)
        logger.handlers[:] = handlers
        logger.propagate = propagate


def test_a_line(output: io.StringIO) -> None:
    logger = logging.getLogger("kafka.server.KafkaServer")
    record = logger.makeRecord(logger.name, logging.INFO, "f", 1, "started (%s)", ("3.9",), None)
    record.created, record.msecs = 1_729_512_000.007, 7.9
    logger.handle(record)
    line = output.getvalue()
    assert re.fullmatch(
        r"\[2024-10-2\d \d\d:\d0:00,007\] INFO started \(3\.9\) \(kafka\.server\.KafkaServer\)\n",
        line,
    )


@pytest.mark.parametrize(
    ("level", "word"),
    [
        (logging.INFO, "INFO"),
        (logging.WARNING, "WARN"),
        (logging.ERROR, "ERROR"),
        (logging.CRITICAL, "FATAL"),
    ],
)
def test_levels_have_log4js_names(output: io.StringIO, level: int, word: str) -> None:
    logging.getLogger("state.change.logger").log(level, "message")
    line = output.getvalue().rstrip("\n")
    assert LINE.fullmatch(line)
    assert f"] {word} message (state.change.logger)" in line


def test_a_stack_trace_follows_its_line(output: io.StringIO) -> None:
    try:
        raise ZeroDivisionError("by zero")
    except ZeroDivisionError:
        logging.getLogger("kafkapy.x").exception("a fault")
    first, *rest = output.getvalue().splitlines()
    assert first.endswith("ERROR a fault (kafkapy.x)")
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1] == "ZeroDivisionError: by zero"


def test_a_name_with_a_line_break_forges_no_line(output: io.StringIO) -> None:
    forged = "g\n[2026-11-28 00:00:00,000] INFO shut down (kafka.server.KafkaServer)\x1b[8m"
    logging.getLogger("kafka.x").info("Preparing to rebalance group %s", forged)
    [line] = output.getvalue().splitlines()
    assert line.endswith(r"INFO shut down (kafka.server.KafkaServer)\x1b[8m (kafka.x)")


def test_libraries_are_heard_from_warnings_on(output: io.StringIO) -> None:
    logging.getLogger("kazoo.client").info("chatter")
    logging.getLogger("kazoo.client").warning("trouble")
    logging.getLogger("kafka.log.LogManager").debug("detail")
    [line] = output.getvalue().splitlines()
    assert line.endswith("WARN trouble (kazoo.client)")


def test_configuring_twice_does_not_write_twice(
    output: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", output)
    configure_logging(level=logging.DEBUG)
    logging.getLogger("kafka.x").debug("once")
    assert output.getvalue().count("once") == 1


def test_trace_has_its_name(output: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", output)
    configure_logging(level=TRACE)
    logging.getLogger("state.change.logger").log(TRACE, "detail")
    assert "] TRACE detail (state.change.logger)" in output.getvalue()


def test_each_line_is_in_one_file_and_all_are_on_stdout(
    output: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", output)
    configure_logging(str(tmp_path / "logs"))
    files = {
        "kafka.server.KafkaServer": "server.log",
        "kazoo.client": "server.log",
        "kafka.controllers": "server.log",
        "kafka.controller.KafkaController": "controller.log",
        "kafka.controller.RequestSendThread": "controller.log",
        "kafka.authorizer.logger": "kafka-authorizer.log",
        "kafka.log.LogCleaner": "log-cleaner.log",
        "kafka.log.LogManager": "server.log",
        "kafka.request.logger": "kafka-request.log",
        "state.change.logger": "state-change.log",
    }
    expected: dict[str, str] = {}
    for name, file in files.items():
        logging.getLogger(name).warning("said")
        line = output.getvalue().splitlines(keepends=True)[-1]
        assert line.endswith(f" WARN said ({name})\n")
        expected[file] = expected.get(file, "") + line
    assert len(output.getvalue().splitlines()) == len(files)
    assert {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()} == expected


def test_a_directory_that_cannot_be_written_is_an_error_of_the_configuration(
    output: io.StringIO, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"kafkapy\.log\.dir: cannot write .*/file/server\.log"):
        configure_logging(str(tmp_path / "file"))
