"""The request log: a line for each request with its response, client and times, as JSON.

It is off unless logger `kafka.request.logger` has level DEBUG. Fields have the names that Kafka
gives them (`kafka.network.RequestConvertToJson`); the times in queues, the security protocol and
`isForwarded` are left out. Only the size of records and other bytes is logged. So no line has a
salted password or a token's HMAC, which Kafka logs. The value of a broker config is redacted unless
the config is known not to be secret.
"""

from __future__ import annotations

import logging
import time
from typing import Final, TypeAlias, TypeVar

import orjson

from kafkapy.common.config_def import ResourceType
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import alter_configs, incremental_alter_configs
from kafkapy.protocol.primitives import Records
from kafkapy.protocol.schema import BYTES, RECORDS, Message, Struct, has_more_elements
from kafkapy.server.api.handler_support import ELEMENTS_AT_ONCE
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.config.kafka_config import BROKER_CONFIGS
from kafkapy.server.requests.outcomes import Outcome, then
from kafkapy.server.requests.request_handler import UNKNOWN_SOFTWARE

M = TypeVar("M", bound=Message)

request_logger: Final = logging.getLogger("kafka.request.logger")
request_logger.setLevel(logging.WARNING)
"""It has its own level, as in Kafka's log4j.properties: a broker whose other loggers have level
DEBUG does not log requests. So `level` can be compared, which costs less than `isEnabledFor`."""

_ALTERS_CONFIGS: Final = (
    alter_configs.AlterConfigsRequest,
    incremental_alter_configs.IncrementalAlterConfigsRequest,
)
_Resource: TypeAlias = (
    alter_configs.AlterConfigsResource | incremental_alter_configs.AlterConfigsResource
)
_REDACTED: Final = "(redacted)"


def log_when_complete(
    outcome: Outcome[M],
    context: RequestContext,
    request: Message | None,
    started: float,
    local_s: float,
) -> Outcome[M]:
    """The outcome of a handler. The line is logged when the response is known.

    `request` is None if it has too many rows to be decoded in one slice. `started` is a time of
    `time.perf_counter`. `local_s` is the time that the handler took.
    """

    def log(response: M) -> M:
        log_line(response)
        return response

    def log_line(response: M | None = None) -> None:
        message = _line(context, request, response, time.perf_counter() - started, local_s)
        request_logger.debug("Completed request:%s", orjson.dumps(message).decode())

    return then(outcome, log, log_line)


def _line(
    context: RequestContext,
    request: Message | None,
    response: object,
    total_s: float,
    local_s: float,
) -> dict[str, object]:
    header, version, caller = context.header, context.version, context.caller
    software = UNKNOWN_SOFTWARE if caller is None else caller.client_software
    return {
        "requestHeader": {
            "requestApiKey": header.api_key,
            "requestApiVersion": version,
            "correlationId": header.correlation_id,
            "clientId": header.client_id,
            "requestApiKeyName": ApiKey(header.api_key).name,
        },
        "request": _body(request, version),
        "response": _body(response, version),
        "connection": context.client_host if caller is None else caller.peer,
        "totalTimeMs": _ms(total_s),
        "localTimeMs": _ms(local_s),
        "remoteTimeMs": _ms(max(0.0, total_s - local_s)),
        "principal": context.principal,
        "listener": context.listener,
        "clientInformation": {"softwareName": software[0], "softwareVersion": software[1]},
    }


def _body(message: object, version: int) -> dict[str, object] | None:
    """A request or response. None if there is none, or if it is too large for one slice."""
    if not isinstance(message, Message):
        return None
    if has_more_elements(message, ELEMENTS_AT_ONCE, numbers=True):
        return None
    fields = _struct(message, version)
    if isinstance(message, _ALTERS_CONFIGS):
        fields["resources"] = [_resource(each, version) for each in message.resources]
    return fields


def _resource(resource: _Resource, version: int) -> dict[str, object]:
    fields = _struct(resource, version)
    if resource.resource_type == ResourceType.BROKER:
        fields["configs"] = [
            {**_struct(each, version), "value": each.value if _is_public(each.name) else _REDACTED}
            for each in resource.configs
        ]
    return fields


def _is_public(broker_config: str) -> bool:
    known = BROKER_CONFIGS.keys.get(broker_config)
    return known is not None and not known.sensitive


def _struct(value: Struct, version: int) -> dict[str, object]:
    fields: dict[str, object] = {}
    for each in value.FIELDS:
        content = getattr(value, each.name)
        if version not in each.versions or (each.tag is not None and content == each.default):
            continue
        name = _json_name(each.name)
        if each.item is BYTES or each.item is RECORDS:
            fields[f"{name}SizeInBytes"] = _size(content)
        else:
            fields[name] = _value(content, version)
    return fields


def _size(content: Records | list[bytes] | None) -> int | None:
    """The size of bytes, of all bytes of an array, or of records in one piece or several."""
    if content is None:
        return None
    return sum(map(len, content)) if isinstance(content, list) else len(content)


def _value(content: object, version: int) -> object:
    if isinstance(content, list):
        return [_value(each, version) for each in content]
    if isinstance(content, Struct):
        return _struct(content, version)
    return str(content) if isinstance(content, Uuid) else content


def _json_name(name: str) -> str:
    """The name in Kafka's message definitions: `topic_id` is `topicId`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
