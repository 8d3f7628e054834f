"""Waits for the first connection to a cluster, and tells failures that may pass from final ones.

`Cluster` fails at once if its first connection fails, because the address may be wrong. The tasks
of a job wait instead: their brokers may restart, and each new process begins with a first
connection.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster

_LOGIN_ERRORS: Final = (
    ErrorCode.SASL_AUTHENTICATION_FAILED,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM,
)


def await_broker(cluster: Cluster, limit_ms: int) -> None:
    """Wait until a broker can be reached.

    Raises:
        ApiError: none could be reached within `limit_ms`, or the login is refused.
    """
    deadline_s = time.monotonic() + limit_ms / 1000
    while True:
        try:
            with cluster.within(deadline_s):
                cluster.channel()
            return
        except ApiError as error:
            if not is_temporary(error) or time.monotonic() >= deadline_s:
                raise
        cluster.pause()


def is_temporary(error: ApiError) -> bool:
    """Whether a request for metadata may succeed later."""
    if _is_final(error):
        return False
    return error.code.retriable or error.code is ErrorCode.BROKER_NOT_AVAILABLE


def _is_final(error: BaseException | None) -> bool:
    """Whether a connection failed because the peers do not trust each other, or the login was
    refused, so that a retry is useless.
    """
    import ssl  # of a failure only

    while error is not None:
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            return True
        if isinstance(error, ApiError) and error.code in _LOGIN_ERRORS:
            return True
        error = error.__cause__
    return False
