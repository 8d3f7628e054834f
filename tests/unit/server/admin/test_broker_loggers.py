"""The levels of a broker's loggers are described and altered: no restart to see more in a log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kafkapy.common.config_def import ConfigSource
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.admin.broker_loggers import BrokerLoggers
from kafkapy.server.admin.config_admin import AlterOp, ConfigOp

PARENT, LOGGER = "kafkapy.test", "kafkapy.test.loggers"


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger that inherits INFO."""
    parent, logger = logging.getLogger(PARENT), logging.getLogger(LOGGER)
    parent.setLevel(logging.INFO)
    yield logger
    parent.setLevel(logging.NOTSET)
    logger.setLevel(logging.NOTSET)


def levels(*names: str) -> dict[str, str | None]:
    return {entry.name: entry.value for entry in BrokerLoggers(1).entries("1", set(names))}


def test_the_levels_in_force_are_log4j_s(logger: logging.Logger) -> None:
    assert levels(PARENT, LOGGER, "missing") == {PARENT: "INFO", LOGGER: "INFO"}
    for level, name in ((5, "TRACE"), (10, "DEBUG"), (25, "WARN"), (30, "WARN"), (60, "FATAL")):
        logger.setLevel(level)
        assert levels(LOGGER) == {LOGGER: name}
    names = [entry.name for entry in BrokerLoggers(1).entries("1")]
    assert {"root", LOGGER} <= set(names)
    assert names == sorted(names)
    [entry] = BrokerLoggers(1).entries("1", {LOGGER})
    assert (entry.source, entry.read_only) == (ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, False)


@pytest.mark.parametrize("name", ["01", "+1", " 1", "1\n", "0_1", "\u0661"])
def test_a_broker_under_many_names_does_not_fill_the_memory_with_its_loggers(name: str) -> None:
    with pytest.raises(ApiError, match="expected 1, but received") as refused:
        BrokerLoggers(1).entries(name)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_a_level_is_set_and_deleted(logger: logging.Logger) -> None:
    loggers = BrokerLoggers(1)
    loggers.change("1", [(LOGGER, AlterOp.SET, "TRACE")], validate_only=True)
    assert not logger.isEnabledFor(5)
    for level in ("DEBUG", "TRACE"):
        loggers.change("1", [(LOGGER, AlterOp.SET, level)], validate_only=False)
    assert logger.isEnabledFor(5)
    loggers.change("1", [(LOGGER, AlterOp.DELETE, None)], validate_only=False)
    assert levels(LOGGER) == {LOGGER: "INFO"}
    assert logger.level == logging.NOTSET, "it inherits again"


def test_a_deleted_level_is_again_the_configured_one(logger: logging.Logger) -> None:
    """Without a level, "kafka" would inherit that of libraries, and log no INFO any more."""
    loggers = BrokerLoggers(1)
    loggers.change("1", [(PARENT, AlterOp.SET, "DEBUG")], validate_only=False)
    for _ in range(2):
        loggers.change("1", [(PARENT, AlterOp.DELETE, None)], validate_only=False)
    assert levels(PARENT) == {PARENT: "INFO"}


@pytest.mark.parametrize(
    ("broker", "refused", "code", "message"),
    [
        ("1", ("missing", AlterOp.SET, "INFO"), ErrorCode.INVALID_CONFIG, "Logger missing does"),
        ("1", ("missing", AlterOp.DELETE, None), ErrorCode.INVALID_CONFIG, "Logger missing does"),
        ("1", (PARENT, AlterOp.SET, "info"), ErrorCode.INVALID_CONFIG, f"Cannot set .* {PARENT} "),
        ("1", (PARENT, AlterOp.APPEND, "INFO"), ErrorCode.INVALID_REQUEST, "APPEND operation is "),
        ("1", (PARENT, AlterOp.SET, None), ErrorCode.INVALID_REQUEST, "Null value not supported"),
        ("1", (LOGGER, AlterOp.SET, "WARN"), ErrorCode.INVALID_REQUEST, "Error due to duplicate"),
        ("1", ("root", AlterOp.DELETE, None), ErrorCode.INVALID_REQUEST, "Removing the log level"),
        ("2", (PARENT, AlterOp.SET, "INFO"), ErrorCode.INVALID_REQUEST, "expected 1, but rec"),
        ("", (PARENT, AlterOp.SET, "INFO"), ErrorCode.INVALID_REQUEST, "must be an integer"),
    ],
)
def test_a_refused_request_changes_no_level(
    logger: logging.Logger, broker: str, refused: ConfigOp, code: ErrorCode, message: str
) -> None:
    with pytest.raises(ApiError, match=message) as error:
        BrokerLoggers(1).change(broker, [(LOGGER, AlterOp.SET, "ERROR"), refused], False)
    assert error.value.code is code
    assert levels(LOGGER) == {LOGGER: "INFO"}


def test_only_the_broker_itself_describes_its_loggers() -> None:
    with pytest.raises(ApiError, match="expected 1, but received 2") as error:
        BrokerLoggers(1).entries("2")
    assert error.value.code is ErrorCode.INVALID_REQUEST
