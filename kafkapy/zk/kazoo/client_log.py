"""The log of the ZooKeeper client. Its level may be lowered while a broker runs (KIP-412)."""

from __future__ import annotations

import logging


class _WithoutContents(logging.Filter):
    """Replaces requests and replies by their kind and path: kazoo logs them whole, with passwords,
    SCRAM credentials and the password of the session.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(map(_described, record.args))
        return True


def _described(argument: object) -> object:
    if argument is None or isinstance(argument, int | float | str | BaseException):
        return argument
    kind, path = type(argument).__name__, getattr(argument, "path", None)
    return kind if path is None else f"{kind} of {path}"


def client_logger() -> logging.Logger:
    """The logger that kazoo uses, with the name of Java's client."""
    logger = logging.getLogger("org.apache.zookeeper.ClientCnxn")
    if not logger.filters:
        logger.addFilter(_WithoutContents())
    return logger
