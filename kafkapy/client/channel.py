"""One connection to one broker: requests, responses, and the negotiation of versions.

The channel is blocking and has at most one request in flight. A failed exchange closes it, because
later responses could not be matched. A request may be sent ahead of the call that reads its
response; until then the channel cannot be used for others.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any, Final

from kafkapy import __version__
from kafkapy.client.transport import Transport
from kafkapy.common.errors import ApiError, ErrorCode, ProtocolViolation
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages import response_class
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.schema import Message

CLIENT_SOFTWARE_NAME: Final = "kafkapy"
# The first bytes of HTTP and of a TLS alert read as a larger size. Later responses have no limit,
# as in Java's clients: a fetch returns at least one batch, however large.
FIRST_RESPONSE_BYTES_MAX: Final = 1 << 28
_SIZE: Final = struct.Struct(">i")

Allocate = Callable[[int], memoryview]
"""Allocates memory for a response of the given size in bytes."""


def zeroed_buffer(size: int) -> memoryview:
    """Zeroed memory."""
    return memoryview(bytearray(size))


class Channel:
    """A connection, its peer's name for messages, and the versions that the peer supports."""

    def __init__(
        self, transport: Transport, peer: str, client_id: str, allocate: Allocate = zeroed_buffer
    ) -> None:
        self.peer = peer
        self.closed = False
        self.outstanding_request: Message | None = None  # the request that was sent ahead
        self.renew_at_s: float | None = None  # when its login must be renewed (KIP-368)
        self.api_versions: dict[int, tuple[int, int]] = {}
        self._transport = transport
        self._client_id = client_id
        self._allocate = allocate
        self._correlation_id = 0

    @property
    def host(self) -> str:
        """The connected host, as it was configured."""
        return self.peer.rpartition(":")[0]

    def negotiate(self, timeout_ms: int) -> None:
        """Request the broker's API versions (KIP-35, KIP-511).

        Raises:
            ApiError: the exchange failed, or the broker refused.
        """
        request = ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME, client_software_version=__version__
        )
        response: ApiVersionsResponse = self.exchange(request, 3, timeout_ms)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            response = self.exchange(ApiVersionsRequest(), 0, timeout_ms)
        if response.error_code != ErrorCode.NONE:
            self.close()
            raise ApiError(ErrorCode(response.error_code), f"{self.peer} refused ApiVersions")
        self.api_versions = {
            key.api_key: (key.min_version, key.max_version) for key in response.api_keys
        }

    def version_for(
        self, request: Message, min_version: int | None = None, max_version: int | None = None
    ) -> int:
        """The highest version that both sides support, within the given bounds.

        Raises:
            ApiError: UNSUPPORTED_VERSION, with the message of `NodeApiVersions`.
        """
        key = request.API_KEY
        low = request.MIN_VERSION if min_version is None else min_version
        high = request.MAX_VERSION if max_version is None else max_version
        offered = self.api_versions.get(key)
        if offered is None:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION, f"The broker does not support {ApiKey(key).name}"
            )
        version = min(high, offered[1])
        if version < max(low, offered[0]):
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The broker does not support {ApiKey(key).name} with version in range "
                f"[{low},{high}]. The supported range is [{offered[0]},{offered[1]}].",
            )
        return version

    def exchange(self, request: Message, version: int, timeout_ms: int) -> Any:
        """Send a request, unless it was sent ahead in this version, and wait for its response.

        Raises:
            ApiError: NETWORK_EXCEPTION or REQUEST_TIMED_OUT; the channel is closed.
            ProtocolViolation: the response is malformed; the channel is closed.
        """
        assert self.outstanding_request is None or self.outstanding_request is request, (
            f"{self.peer} has the response to another request outstanding"
        )
        deadline = time.monotonic() + timeout_ms / 1000
        try:
            if self.outstanding_request is None:
                self._send(request, version, timeout_ms)
            self.outstanding_request = None
            frame = self._read_frame(deadline)
            # A refused ApiVersions is answered in version 0, whatever the request's version.
            if request.API_KEY == ApiKey.API_VERSIONS and _error_code(frame) != 0:
                version = 0
            correlation_id, response = decode_response(
                response_class(request.API_KEY), version, frame
            )
        except TimeoutError as error:
            self.close()
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"{self.peer} did not answer {request.API_KEY.name} within {timeout_ms} ms",
            ) from error
        except OSError as error:
            self.close()
            raise ApiError(
                ErrorCode.NETWORK_EXCEPTION,
                f"The connection to {self.peer} was lost: {error.strerror or error}",
            ) from error
        except BaseException:  # Ctrl-C too, or the next request would get this response
            self.close()
            raise
        if correlation_id != self._correlation_id:
            self.close()
            raise ProtocolViolation(
                f"{self.peer} answered request {correlation_id} instead of {self._correlation_id}"
            )
        return response

    def send_ahead(self, request: Message, version: int, timeout_ms: int) -> None:
        """Send a request whose response the next exchange reads. If that fails, the channel is
        closed, and the next exchange needs another one.
        """
        assert self.outstanding_request is None, f"{self.peer} has a response outstanding already"
        try:
            self._send(request, version, timeout_ms)
        except OSError:
            self.close()
        except BaseException:  # part of the request may have been sent
            self.close()
            raise
        else:
            self.outstanding_request = request

    @property
    def needs_login(self) -> bool:
        """Whether most of the session's lifetime has passed, and no request is in flight."""
        at_s = self.renew_at_s
        return at_s is not None and self.outstanding_request is None and time.monotonic() >= at_s

    def close(self) -> None:
        """Close the connection, if it is open."""
        self.closed = True
        self._transport.close()

    def _send(self, request: Message, version: int, timeout_ms: int) -> None:
        self._correlation_id += 1
        self._transport.settimeout(timeout_ms / 1000)
        self._transport.sendall(
            encode_request(request, version, self._correlation_id, self._client_id)
        )

    def _read_frame(self, deadline: float) -> memoryview:
        (size,) = _SIZE.unpack(self._read(zeroed_buffer(_SIZE.size), deadline))
        if size < 4 or (size > FIRST_RESPONSE_BYTES_MAX and not self.api_versions):
            raise ProtocolViolation(
                f"{self.peer} announced a response of {size} bytes: it is not a Kafka broker, "
                "or it speaks another security protocol"
            )
        return self._read(self._allocate(size), deadline)

    def _read(self, view: memoryview, deadline: float) -> memoryview:
        position = 0
        while position < len(view):
            self._transport.settimeout(max(0.001, deadline - time.monotonic()))
            count = self._transport.recv_into(view[position:])
            if count == 0:
                raise ConnectionResetError("the broker closed it")
            position += count
        return view


def _error_code(frame: memoryview) -> int:
    """The first field after a v0 response header."""
    return int.from_bytes(frame[4:6], "big", signed=True)
