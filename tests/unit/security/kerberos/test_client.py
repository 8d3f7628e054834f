"""The client's half of GSSAPI: what it says, and brokers that prove nothing."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.security.kerberos.client import gssapi_conversation
from kafkapy.security.kerberos.gss_context import CHOICE, OFFER, GssContext, GssFailed
from kafkapy.security.sasl.client import Conversation
from tests.harness.security.scripted_gss import ScriptedContext


def talk() -> Conversation:
    return gssapi_conversation(lambda: ScriptedContext((b"", b"AP-REQ"), (b"AP-REP", b"")))


def test_a_login() -> None:
    one = talk()
    assert next(one) == b"AP-REQ"
    assert one.send(b"AP-REP") == b""
    assert one.send(b"wrapped " + OFFER) == b"wrapped " + CHOICE
    with pytest.raises(StopIteration):
        one.send(b"")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([b"not Kerberos"], "is no token"),
        ([b"AP-REP", b"not wrapped"], "invalid signature"),
        ([b"AP-REP", b"wrapped \x02\0\0\0"], "security layer"),
    ],
)
def test_a_broker_that_cannot_prove_itself(answers: list[bytes], said: str) -> None:
    one = talk()
    next(one)
    for answer in answers[:-1]:
        one.send(answer)
    with pytest.raises(ApiError, match=said) as refused:
        one.send(answers[-1])
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_no_ticket() -> None:
    def begin() -> GssContext:
        raise GssFailed("No Kerberos login by keytab k: no such file")

    with pytest.raises(ApiError) as refused:
        next(gssapi_conversation(begin))
    assert refused.value.message == "No Kerberos login by keytab k: no such file"
