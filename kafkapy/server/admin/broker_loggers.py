"""The levels of this broker's loggers, which requests describe and alter (KIP-412).

As in `kafka.utils.Log4jController`, the levels are log4j's, and a change lasts until the broker
stops.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from kafkapy.common.config_def import ConfigSource
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.controller.state_change_log import TRACE
from kafkapy.metadata.topic_config import ConfigEntry
from kafkapy.server.admin.config_admin import AlterOp, ConfigOp, check_broker_id, check_ops

ROOT: Final = "root"

_LEVELS: Final = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Python's level for each of log4j's, ascending."""


class BrokerLoggers:
    """The loggers of the process of broker `broker_id`."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._configured: dict[str, int] = {}
        """The levels that altered loggers had before."""

    def entries(self, broker: str, names: set[str] | None = None) -> list[ConfigEntry]:
        """The levels in force of the loggers `names`, or of all loggers.

        Raises:
            ApiError: INVALID_REQUEST: `broker` is another broker.
        """
        check_broker_id(broker, self._broker_id)
        return [
            _entry(name, logger)
            for name, logger in sorted(_loggers().items())
            if names is None or name in names
        ]

    def change(self, broker: str, ops: Sequence[ConfigOp], validate_only: bool) -> None:
        """Set levels. A deletion restores the level from before the first change. If one operation
        is refused, nothing is changed.

        Raises:
            ApiError: INVALID_REQUEST: `broker` is another broker, a null value, or an operation
                that loggers do not have; INVALID_CONFIG: an unknown logger or level.
        """
        check_ops(ops)
        check_broker_id(broker, self._broker_id)
        loggers = _loggers()
        for name, op, value in ops:
            _check(name, AlterOp(op), value, loggers)
        if validate_only:
            return
        for name, op, value in ops:
            logger = loggers[name]
            if op == AlterOp.SET:
                self._configured.setdefault(name, logger.level)
                logger.setLevel(_LEVELS[value or ""])
            elif name in self._configured:
                logger.setLevel(self._configured.pop(name))


def _loggers() -> dict[str, logging.Logger]:
    found = logging.root.manager.loggerDict.items()
    loggers = {name: each for name, each in found if isinstance(each, logging.Logger)}
    return {ROOT: logging.root, **loggers}


def _entry(name: str, logger: logging.Logger) -> ConfigEntry:
    level = logger.getEffectiveLevel()
    value = next((name for name, least in _LEVELS.items() if level <= least), "FATAL")
    source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return ConfigEntry(name, value, source, False, False, None, "", ())


def _check(name: str, op: AlterOp, value: str | None, loggers: dict[str, logging.Logger]) -> None:
    if op not in (AlterOp.SET, AlterOp.DELETE):
        message = f"{op.name} operation is not allowed for the BROKER_LOGGER resource"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    if name not in loggers:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if op is AlterOp.SET and value not in _LEVELS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {value} as it is not a supported log level."
            f" Valid log levels are {', '.join(_LEVELS)}",
        )
    if op is AlterOp.DELETE and name == ROOT:
        message = f"Removing the log level of the {ROOT} logger is not allowed"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
