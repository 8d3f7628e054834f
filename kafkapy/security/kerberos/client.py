"""The client's half of SASL/GSSAPI (RFC 4752), without a connection."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.security.kerberos.gss_context import CHOICE, GssContext, GssFailed, check_offer
from kafkapy.security.sasl.client import Conversation


def gssapi_conversation(begin: Callable[[], GssContext]) -> Conversation:
    """The client's half of a login. Until its first message it may send requests to the KDC, and
    block.
    """
    try:
        context = begin()
        challenge = yield context.step(b"")
        while not context.is_established:
            challenge = yield context.step(challenge)
        check_offer(context.unwrap(challenge))
        yield context.wrap(CHOICE)
    except GssFailed as failed:
        raise ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(failed)) from failed
