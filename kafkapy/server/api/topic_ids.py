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
from kafkapy.server.api.refused_rows import handle_passed_rows
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.served import AnyServedApi
from kafkapy.server.requests.outcomes import Outcome, OutcomeOrWork
from kafkapy.server.requests.turns import ROWS_AT_ONCE, Work, as_work, chunks


class _TopicFields(NamedTuple):
    """The first version of an API with ids, and the fields with its topics."""

    first_version: int
    rows: str
    response_rows: str


TOPIC_FIELDS: Final[dict[int, _TopicFields]] = {
    ApiKey.PRODUCE: _TopicFields(13, "topic_data", "responses"),
    ApiKey.OFFSET_COMMIT: _TopicFields(10, "topics", "topics"),
    ApiKey.TXN_OFFSET_COMMIT: _TopicFields(6, "topics", "topics"),
}


def with_known_ids(table: dict[int, AnyServedApi]) -> dict[int, AnyServedApi]:
    """The table of APIs, in which topics with unknown ids are refused before the handler runs,
    except in Produce.
    """
    return {
        key: row._replace(handle=partial(_handle_known, TOPIC_FIELDS[key], row))
        if key in TOPIC_FIELDS and key != ApiKey.PRODUCE
        else row
        for key, row in table.items()
    }


def with_names(table: dict[int, AnyServedApi], metadata: MetadataCache) -> dict[int, AnyServedApi]:
    """The table of APIs, in which the names of topic ids are set before the handler runs."""
    resolve = partial(_resolve, metadata)
    return {
        key: row._replace(handle=partial(resolve, TOPIC_FIELDS[key], row))
        if key in TOPIC_FIELDS
        else row
        for key, row in table.items()
    }


def _resolve(
    metadata: MetadataCache,
    fields: _TopicFields,
    served: AnyServedApi,
    context: RequestContext,
    request: Message,
) -> OutcomeOrWork[Message]:
    if context.version < fields.first_version:
        return served.handle(context, request)
    topics = getattr(request, fields.rows)
    if len(topics) > ROWS_AT_ONCE:
        return _resolve_in_slices(metadata, fields, served, context, request)
    image = metadata.image
    for topic in topics:
        topic.name = image.topic_name(None, topic.topic_id)
    return served.handle(context, request)


def _resolve_in_slices(
    metadata: MetadataCache,
    fields: _TopicFields,
    served: AnyServedApi,
    context: RequestContext,
    request: Message,
) -> Work[Outcome[Message]]:
    image = metadata.image
    for topics in chunks(getattr(request, fields.rows)):
        for topic in topics:
            topic.name = image.topic_name(None, topic.topic_id)
        yield len(topics)
    return (yield from as_work(served.handle(context, request)))


def _handle_known(
    fields: _TopicFields, served: AnyServedApi, context: RequestContext, request: Message
) -> OutcomeOrWork[Message]:
    if context.version < fields.first_version:
        return served.handle(context, request)
    topics = getattr(request, fields.rows)
    if len(topics) <= ROWS_AT_ONCE and all(topic.name is not None for topic in topics):
        return served.handle(context, request)
    return _refuse_unknown(fields, served, context, request)


def _refuse_unknown(
    fields: _TopicFields, served: AnyServedApi, context: RequestContext, request: Message
) -> Work[Outcome[Message]]:
    known: list[object] = []
    unknown: list[object] = []
    for topics in chunks(getattr(request, fields.rows)):
        for topic in topics:
            (unknown if topic.name is None else known).append(topic)
        yield len(topics)
    refused = {ErrorCode.UNKNOWN_TOPIC_ID: unknown} if unknown else {}
    return (
        yield from handle_passed_rows(
            served, context, request, fields.rows, fields.response_rows, known, refused
        )
    )
