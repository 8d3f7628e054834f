"""A refusal carries the code that the client gets."""

from __future__ import annotations

from kafkapy.zk.service.refusals import Refused
from kafkapy.zk.wire.codes import ErrorCode


def test_a_refusal_says_its_code() -> None:
    refused = Refused(ErrorCode.NONODE)
    assert (refused.code, str(refused)) == (-101, "NONODE")
