"""Dispatches requests: decodes a frame, calls the handler, and encodes the response."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final, overload

from kafkapy.common.errors import ApiError, ErrorCode, MessageTooLarge, ProtocolViolation
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.compile import decoder, sliced_decoder
from kafkapy.protocol.framing import SCRATCH_BYTES_MAX
from kafkapy.protocol.headers import (
    RequestHeader,
    decode_request_header,
    encode_response,
    sliced_encode_response,
)
from kafkapy.protocol.schema import has_more_elements
from kafkapy.protocol.server_connection import Request
from kafkapy.server.api.fetch_fast_path import FetchFastPath, is_follower_session_fetch
from kafkapy.server.api.handler_support import ELEMENTS_AT_ONCE, refusal
from kafkapy.server.api.produce_fast_path import ProduceFastPath
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.request_log import log_when_complete, request_logger
from kafkapy.server.requests.outcomes import CLOSE_CONNECTION, CloseConnection, NoResponse, Pending
from kafkapy.server.requests.turns import as_work

if TYPE_CHECKING:
    from kafkapy.protocol.schema import Message
    from kafkapy.server.api.served import AnyServedApi
    from kafkapy.server.api.throttler import Throttler
    from kafkapy.server.counts.metrics import RequestMetrics
    from kafkapy.server.requests.outcomes import Outcome
    from kafkapy.server.requests.request_handler import (
        Caller,
        Encodable,
        FastPath,
        Parts,
        Reply,
        RunningWork,
    )
    from kafkapy.server.requests.turns import SliceScheduler, Work

logger = logging.getLogger("kafka.server.KafkaApis")

_RESPONSE_HAS_REQUEST_ROWS: Final = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.OFFSET_COMMIT})
_NOT_MESSAGES: Final = (Pending, NoResponse, CloseConnection)
_NOT_TO_ENCODE: Final = (list, NoResponse, CloseConnection, ProtocolViolation)

ROOM_AT_ONCE_BYTES: Final = 1 << 19
"""Requests that take at most this much memory are decoded in one slice: about 2,000 rows, 2 ms."""
ROOM_BYTES_MIN: Final = 1 << 24
ROOM_BYTES_MAX: Final = 1 << 27
ROOM_PER_BYTE: Final = 28
"""The memory that a request may take for each of its bytes. Rows of real requests, with their
responses, need up to 27.2 (StopReplica); a frame of 1 MB with rows of one byte would take
200 MB.
"""


class Dispatcher:
    """Routes requests of all connections."""

    def __init__(
        self,
        table: Mapping[int, AnyServedApi],
        metrics: RequestMetrics,
        throttler: Throttler,
        slices: SliceScheduler,
        produce_fast_path: Callable[[RequestContext, Caller], ProduceFastPath],
        fetch_fast_path: Callable[[RequestContext, Caller], FetchFastPath],
    ) -> None:
        self._table = table
        self._metrics = metrics
        self._quotas = throttler.quotas
        self._throttler = throttler
        self._slices = slices
        self._produce_fast_path = produce_fast_path
        self._fetch_fast_path = fetch_fast_path

    def dispatch(self, connection: Caller, request: Request) -> Reply:
        """Handle one request. Returns the encoded response, a `Pending`, `NO_RESPONSE` or
        `CLOSE_CONNECTION`.

        Raises:
            ProtocolViolation: unknown key, unserved version or undecodable body. The caller
                closes the connection.
        """
        header = request.header
        served = self._table.get(header.api_key)
        if served is None:
            raise ProtocolViolation(f"unknown or unserved api key {header.api_key}")
        started = time.perf_counter()
        version = header.api_version
        context = self._context(connection, header)
        if not served.min_version <= version <= served.max_version:
            if header.api_key != ApiKey.API_VERSIONS:
                raise ProtocolViolation(
                    f"version {version} of {served.name} is not served"
                    f" ({served.min_version} to {served.max_version} are)"
                )
            # KIP-511: the response to an unknown version of ApiVersions is in v0, and has the
            # versions that are served.
            header = header._replace(api_version=0)
            context.header, context.version = header, 0
            # The handler of ApiVersions returns its response at once.
            return self.encode(header, served.handle(context, None))  # type: ignore[arg-type]
        outcome: Outcome[Message] | RunningWork
        message = None
        try:
            message, _ = decoder(served.request_class, version)(
                request.frame, request.body, ROOM_AT_ONCE_BYTES
            )
        except MessageTooLarge:
            work = self._handle_large(served, context, request)
            outcome = self._slices.queue(work, may_drop=header.api_key != ApiKey.PRODUCE)
        else:
            outcome = self._call(served, context, message)
            if isinstance(outcome, GeneratorType):
                outcome = self._slices.run(self._continue(served, context, message, outcome))
            self._prepare_fast_path(connection, request, message)
        seconds = time.perf_counter() - started
        self._metrics.observe(served.name, seconds)
        if self._quotas.are_set:
            outcome = self._throttler.charge_request(connection, context, request, outcome, seconds)
        if request_logger.level <= logging.DEBUG:
            outcome = log_when_complete(outcome, context, message, started, seconds)
        if isinstance(outcome, _NOT_MESSAGES):
            return outcome
        if header.api_key not in _RESPONSE_HAS_REQUEST_ROWS:
            return self.encode(header, outcome)
        # Hot. These responses have the rows of their requests, which were decoded in one slice. So
        # they are not too large to be encoded in one slice.
        return encode_response(outcome, header.api_key, version, header.correlation_id)

    def _handle_large(
        self, served: AnyServedApi, context: RequestContext, request: Request
    ) -> Work[Outcome[Message] | ProtocolViolation]:
        """Decode and handle a request with many rows. A protocol violation is returned, not raised:
        the connection handles it.
        """
        frame = request.frame
        if len(frame) <= SCRATCH_BYTES_MAX:
            # Data that arrives meanwhile overwrites the receive buffer, in which the frame lies.
            frame = memoryview(bytes(frame))
        room = min(max(ROOM_BYTES_MIN, len(frame) * ROOM_PER_BYTE), ROOM_BYTES_MAX)
        return self._decode_and_handle(served, context, frame, request.body, room)

    def _decode_and_handle(
        self, served: AnyServedApi, context: RequestContext, frame: memoryview, body: int, room: int
    ) -> Work[Outcome[Message] | ProtocolViolation]:
        decode = sliced_decoder(served.request_class, context.version)
        try:
            message, _ = yield from decode(frame, body, room)
            outcome = self._call(served, context, message)
            if isinstance(outcome, GeneratorType):
                outcome = yield from self._continue(served, context, message, outcome)
        except ProtocolViolation as violation:
            return violation
        return outcome

    def _prepare_fast_path(  # type: ignore[explicit-any]
        self, connection: Caller, request: Request, message: Any
    ) -> None:
        """Prepare the connection's fast path for later requests like this one. `message` is of the
        class of the request's API key.
        """
        key = request.header.api_key
        if key == ApiKey.PRODUCE:
            if connection.fast_path is None:
                context = self._context(connection, request.header)
                connection.fast_path = self._produce_fast_path(context, connection)
            if isinstance(connection.fast_path, ProduceFastPath):
                connection.fast_path.prepare(request.frame, request.header, message)
        elif key == ApiKey.FETCH and is_follower_session_fetch(message):
            if connection.fast_path is None:
                context = self._context(connection, request.header)
                connection.fast_path = self._fetch_fast_path(context, connection)
            if isinstance(connection.fast_path, FetchFastPath):
                connection.fast_path.prepare(request.frame, request.header, message)

    def _context(self, connection: Caller, header: RequestHeader) -> RequestContext:
        return RequestContext(
            header,
            connection.client_host,
            connection.listener,
            connection.principal,
            connection.is_token,
            connection,
        )

    def _call(
        self, served: AnyServedApi, context: RequestContext, message: Message
    ) -> Outcome[Message] | RunningWork:
        try:
            return served.handle(context, message)  # type: ignore[return-value]
        except ProtocolViolation:
            raise
        except Exception as fault:
            return _refusal(served, context, message, fault)

    def _continue(
        self,
        served: AnyServedApi,
        context: RequestContext,
        message: Message,
        work: Work[Outcome[Message]],
    ) -> Work[Outcome[Message]]:
        """Continue a handler's work, with the error handling of `_call`."""
        try:
            return (yield from work)
        except ProtocolViolation:
            raise
        except Exception as fault:
            return (yield from as_work(_refusal(served, context, message, fault)))

    def dispatch_fast(
        self, connection: Caller, fast_path: FastPath, frame: memoryview
    ) -> bytes | Reply | None:
        """Handle a request on the connection's fast path. Returns the same as `dispatch`; or None,
        without an effect, if the request must take the general path.
        """
        if request_logger.level <= logging.DEBUG:
            return None
        started = time.perf_counter()
        try:
            response = fast_path.handle(frame)
        except Exception as fault:
            # The request may have had effects before the exception, so it is not handled again.
            header, body = decode_request_header(frame)
            served = self._table[header.api_key]
            message, _ = decoder(served.request_class, header.api_version)(frame, body)
            context = self._context(connection, header)
            refusal = _refusal(served, context, message, fault)
            response = self.encode(header, refusal)
        if response is not None:
            fast_path.times.add(time.perf_counter() - started)
        return response

    @overload
    def encode(
        self, header: RequestHeader, response: Message | CloseConnection | RunningWork
    ) -> Reply: ...

    @overload
    def encode(self, header: RequestHeader, response: Encodable) -> Reply | ProtocolViolation: ...

    def encode(self, header: RequestHeader, response: Encodable) -> Reply | ProtocolViolation:
        """Encode a response. Large responses, and responses that a generator creates, are encoded
        in slices. Encoded responses, `NO_RESPONSE`, `CLOSE_CONNECTION` and protocol violations are
        returned unchanged.
        """
        if isinstance(response, _NOT_TO_ENCODE):
            return response
        if isinstance(response, GeneratorType):
            return self._slices.queue(_create_and_encode(response, header))
        if has_more_elements(response, ELEMENTS_AT_ONCE):
            return self._slices.queue(_encode_large(response, header))
        try:
            return encode_response(
                response, header.api_key, header.api_version, header.correlation_id
            )
        except ValueError as error:
            return _close_unencodable(error)


def _create_and_encode(
    response: Work[Outcome[Message]], header: RequestHeader
) -> Work[Outcome[Parts | Message]]:
    message = yield from response
    return (
        message
        if isinstance(message, _NOT_MESSAGES)
        else (yield from _encode_large(message, header))
    )


def _encode_large(response: Message, header: RequestHeader) -> Work[Parts | CloseConnection]:
    try:
        return (yield from sliced_encode_response(response, header))
    except ValueError as error:
        return _close_unencodable(error)


def _close_unencodable(error: ValueError) -> CloseConnection:
    """Close a connection whose response cannot be encoded in the client's version, so that the
    client gets an error at once, not a timeout.
    """
    logger.error("Closing a connection whose response cannot be encoded: %s", error)
    return CLOSE_CONNECTION


def _refusal(
    served: AnyServedApi, context: RequestContext, message: Message, fault: Exception
) -> Message | CloseConnection | RunningWork:
    if not isinstance(fault, ApiError):
        logger.error(
            "Error while handling %s from %s", served.name, context.client_host, exc_info=fault
        )
        fault = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    # A handler raises an ApiError to refuse the whole request.
    return refusal(served.refuse, message, fault, context.version)  # type: ignore[return-value]
