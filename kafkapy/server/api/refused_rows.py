"""Refuses some rows of a request, and handles the others."""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.api.handler_support import refusal
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.served import AnyServedApi, ServedApi
from kafkapy.server.requests.outcomes import CLOSE_CONNECTION, CloseConnection, Outcome, then
from kafkapy.server.requests.turns import ROW_UNITS, Work, as_work, chunks

if TYPE_CHECKING:
    from kafkapy.protocol.schema import Message

M = TypeVar("M", bound="Message")
R = TypeVar("R", bound="Message")


def handle_passed_rows(
    served: AnyServedApi,
    context: RequestContext,
    request: Message,
    rows: str,
    response_rows: str,
    passed: Sequence[object],
    refused: Mapping[ErrorCode, Sequence[object]],
) -> Work[Outcome[Message]]:
    """Handle the `passed` rows of the field `rows`. The refused ones are appended to
    `response_rows` of the response.
    """
    if not refused:
        return (yield from as_work(served.handle(context, request)))
    refusals: list[Message] = []
    closes = False
    for code, denied in refused.items():
        for few in chunks(denied):
            part = yield from refuse_rows(served, context, with_rows(request, rows, few), code)
            if part is CLOSE_CONNECTION:  # Produce with acks=0
                closes = True
            else:
                refusals.append(part)
            yield ROW_UNITS * len(few)
    if closes:
        if passed:
            yield from as_work(served.handle(context, with_rows(request, rows, passed)))
        return CLOSE_CONNECTION
    if not passed:
        return _join_rows(refusals[0], refusals[1:], response_rows)
    outcome = yield from as_work(served.handle(context, with_rows(request, rows, passed)))

    def join_rows(response: Message) -> Message:
        return _join_rows(response, refusals, response_rows)

    return then(outcome, join_rows)


def refuse_rows(
    served: ServedApi[M, R], context: RequestContext, request: M, code: ErrorCode
) -> Work[R | CloseConnection]:
    """The refusal of `request`, a copy with some of the original's rows. Another thread creates a
    large one: one row may have 80,000 partitions.
    """
    response = refusal(served.refuse, request, ApiError(code), context.version)
    return (yield from response) if isinstance(response, Generator) else response


def with_rows(request: M, field: str, rows: Sequence[object]) -> M:
    """A copy of a request with other rows."""
    changed = copy.copy(request)
    setattr(changed, field, rows)
    return changed


def _join_rows(response: M, others: Sequence[M], field: str) -> M:
    rows = list(getattr(response, field))
    for other in others:
        rows += getattr(other, field)
    setattr(response, field, rows)
    return response
