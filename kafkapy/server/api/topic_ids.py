"""Resolves topic ids in requests whose older versions have topic names (KIP-516).

The name of each id is set before the rule of the API runs, so topics are authorized by name. The
name of an unknown id is None: no right is needed for it, and it is refused with UNKNOWN_TOPIC_ID
after the rule. Handlers receive known topics only, except the handler of Produce, which refuses
unknown ids itself. Fetch, whose sessions keep ids, and OffsetFetch, whose rows are nested, resolve
ids themselves.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import Message
from kafkapy.server.api.refused_rows import handle_others
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.served import AnyServed
from kafkapy.server.requests.outcomes import Handled, Outcome
from kafkapy.server.requests.turns import ROWS_AT_ONCE, Work, pieces, worked


class _Form(NamedTuple):
    """The first version of an API with ids, and the fields with its topics."""

    first_version: int
    rows: str
    answer: str


FORMS: Final[dict[int, _Form]] = {
    ApiKey.PRODUCE: _Form(13, "topic_data", "responses"),
    ApiKey.OFFSET_COMMIT: _Form(10, "topics", "topics"),
    ApiKey.TXN_OFFSET_COMMIT: _Form(6, "topics", "topics"),
}


def with_known_ids(table: dict[int, AnyServed]) -> dict[int, AnyServed]:
    """The table of APIs, in which topics with unknown ids are refused before the handler runs,
    except in Produce.
    """
    return {
        key: row._replace(handle=partial(_handle_known, FORMS[key], row))
        if key in FORMS and key != ApiKey.PRODUCE
        else row
        for key, row in table.items()
    }


def with_names(table: dict[int, AnyServed], metadata: MetadataCache) -> dict[int, AnyServed]:
    """The table of APIs, in which the names of topic ids are set before the handler runs."""
    resolve = partial(_resolve, metadata)
    return {
        key: row._replace(handle=partial(resolve, FORMS[key], row)) if key in FORMS else row
        for key, row in table.items()
    }


def _resolve(
    metadata: MetadataCache,
    form: _Form,
    served: AnyServed,
    context: RequestContext,
    request: Message,
) -> Handled[Message]:
    if context.version < form.first_version:
        return served.handle(context, request)
    topics = getattr(request, form.rows)
    if len(topics) > ROWS_AT_ONCE:
        return _resolve_in_slices(metadata, form, served, context, request)
    image = metadata.image
    for topic in topics:
        topic.name = image.topic_name(None, topic.topic_id)
    return served.handle(context, request)


def _resolve_in_slices(
    metadata: MetadataCache,
    form: _Form,
    served: AnyServed,
    context: RequestContext,
    request: Message,
) -> Work[Outcome[Message]]:
    image = metadata.image
    for topics in pieces(getattr(request, form.rows)):
        for topic in topics:
            topic.name = image.topic_name(None, topic.topic_id)
        yield len(topics)
    return (yield from worked(served.handle(context, request)))


def _handle_known(
    form: _Form, served: AnyServed, context: RequestContext, request: Message
) -> Handled[Message]:
    if context.version < form.first_version:
        return served.handle(context, request)
    topics = getattr(request, form.rows)
    if len(topics) <= ROWS_AT_ONCE and all(topic.name is not None for topic in topics):
        return served.handle(context, request)
    return _refuse_unknown(form, served, context, request)


def _refuse_unknown(
    form: _Form, served: AnyServed, context: RequestContext, request: Message
) -> Work[Outcome[Message]]:
    known: list[object] = []
    unknown: list[object] = []
    for topics in pieces(getattr(request, form.rows)):
        for topic in topics:
            (unknown if topic.name is None else known).append(topic)
        yield len(topics)
    refused = {ErrorCode.UNKNOWN_TOPIC_ID: unknown} if unknown else {}
    return (
        yield from handle_others(served, context, request, form.rows, form.answer, known, refused)
    )
