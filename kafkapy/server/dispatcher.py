"""From a frame to a handler and back to bytes: the one place that knows every served API.

The table is `handlers.SERVED`; ApiVersions, metrics names and the README's table come from it too.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.errors import ApiError, ErrorCode, ProtocolViolation
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.compile import decoder
from kafkapy.protocol.headers import RequestHeader, decode_request_header, encode_response
from kafkapy.protocol.server_connection import Request
from kafkapy.server.authorization_rules import RULES, guard
from kafkapy.server.fetch_fast_path import FetchFastPath, is_of_session
from kafkapy.server.handlers import SERVED, Served
from kafkapy.server.produce_fast_path import ProduceFastPath
from kafkapy.server.request import (
    CLOSE_CONNECTION,
    NO_RESPONSE,
    CloseConnection,
    NoResponse,
    Pending,
    RequestContext,
)
from kafkapy.server.transaction_rules import TRANSACTION_RULES

if TYPE_CHECKING:
    from kafkapy.server.connection import Connection
    from kafkapy.server.services import Services

logger = logging.getLogger("kafka.server.KafkaApis")

_NOT_MESSAGES: Final = (Pending, NoResponse, CloseConnection)


class Dispatcher:
    """Routes requests of all connections."""

    def __init__(self, broker: Services) -> None:
        self._broker = broker
        # Decided here, so that nothing is asked of a request where everything is allowed.
        is_guarded = broker.authorizer is not None
        self._table = guard(SERVED, RULES | TRANSACTION_RULES) if is_guarded else dict(SERVED)
        self._metrics = broker.metrics.requests
        self._quotas = broker.client_quotas

    def dispatch(self, connection: Connection, request: Request) -> Any:
        """Handle one request: its encoded response, a `Pending`, or how to end.

        Raises:
            ProtocolViolation: unknown key, unserved version or undecodable body; the caller closes.
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
            # KIP-511: an unknown ApiVersions version is answered in v0 with what is served.
            header = header._replace(api_version=0)
            context.header, context.version = header, 0
            return self.encode(header, served.handle(context, None))
        message, _ = decoder(served.request_class, version)(request.frame, request.body)
        outcome = self._call(served, context, message)
        self._learn(connection, request, message)
        seconds = time.perf_counter() - started
        self._metrics.observe(served.name, seconds)
        if self._quotas.are_set:
            outcome = self._broker.throttler.settle(connection, context, request, outcome, seconds)
        if isinstance(outcome, _NOT_MESSAGES):
            return outcome
        return encode_response(outcome, header.api_key, version, header.correlation_id)

    def _learn(self, connection: Connection, request: Request, message: Any) -> None:
        """Later requests of this kind may take the fast path."""
        key = request.header.api_key
        if key == ApiKey.PRODUCE:
            if connection.fast_path is None:
                context = self._context(connection, request.header)
                connection.fast_path = ProduceFastPath(context, connection)
            if isinstance(connection.fast_path, ProduceFastPath):
                connection.fast_path.learn(request.frame, request.header, message)
        elif key == ApiKey.FETCH and is_of_session(message):
            if connection.fast_path is None:
                context = self._context(connection, request.header)
                connection.fast_path = FetchFastPath(context, connection)
            if isinstance(connection.fast_path, FetchFastPath):
                connection.fast_path.learn(request.frame, request.header, message)

    def _context(self, connection: Connection, header: RequestHeader) -> RequestContext:
        return RequestContext(
            self._broker,
            header,
            connection.client_host,
            connection.listener,
            connection.principal,
            connection.is_token,
        )

    def _call(self, served: Served, context: RequestContext, message: Any) -> Any:
        try:
            return served.handle(context, message)
        except ApiError as error:
            # A handler that has no row for a refusal of the whole request says it here.
            return served.refuse(message, error, context.version)
        except ProtocolViolation:
            raise
        except Exception:
            return _fault(served, context, message)

    def repeat(
        self, connection: Connection, fast_path: ProduceFastPath | FetchFastPath, frame: memoryview
    ) -> Any:
        """Handle a request on the connection's fast path: its encoded response, a `Pending` of one,
        or how to end; None, and nothing done, if it must take the general path."""
        started = time.perf_counter()
        try:
            answer = fast_path.handle(frame)
        except Exception:
            # What it did until then is not known, so it is not handled again.
            header, body = decode_request_header(frame)
            served = self._table[header.api_key]
            message, _ = decoder(served.request_class, header.api_version)(frame, body)
            refusal = _fault(served, self._context(connection, header), message)
            answer = self.encode(header, refusal)
        if answer is not None:
            fast_path.times.add(time.perf_counter() - started)
        return answer

    def encode(self, header: RequestHeader, response: Any) -> Any:
        """A response that came late, as bytes; the two endings pass through."""
        if response is NO_RESPONSE or response is CLOSE_CONNECTION:
            return response
        return encode_response(response, header.api_key, header.api_version, header.correlation_id)


def _fault(served: Served, context: RequestContext, message: Any) -> Any:
    """What a request is answered with after an unexpected exception, which is logged."""
    logger.exception("Error while handling %s from %s", served.name, context.client_host)
    return served.refuse(message, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR), context.version)
