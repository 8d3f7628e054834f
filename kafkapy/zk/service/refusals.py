"""Refusals of requests, as error codes of the protocol."""

from __future__ import annotations

from kafkapy.common.errors import KafkapyError
from kafkapy.zk.wire.codes import ErrorCode


class Refused(KafkapyError):
    """The request fails with `code`; nothing happened."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code
