"""Request and response headers, and whole frames.

A frame is an i32 size and that number of bytes. A request header is v0 (only ControlledShutdown v0:
no client id), v1, or v2 (flexible requests: tagged fields after the client id, which stays a
classic string). A response header is v0 (the correlation id), or v1 (tagged fields too) if the
response is flexible. That of ApiVersions is always v0, since its reader may not know the broker's
versions yet.
"""

from __future__ import annotations

from collections.abc import Generator
from struct import Struct as Layout
from struct import error as StructError
from typing import Final, NamedTuple, TypeVar

from kafkapy.common.errors import ProtocolViolation
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.compile import (
    ENCODING_ERRORS,
    decode,
    encode,
    encoder,
    sliced_encoder,
    unencodable,
)
from kafkapy.protocol.primitives import Buffer, replaced_text, skip_tagged_fields
from kafkapy.protocol.schema import Message

M = TypeVar("M", bound=Message)

_KEY_VERSION_CORRELATION: Final = Layout(">hhi")
_REQUEST: Final = Layout(">ihhih")
_I16: Final = Layout(">h")
_I32: Final = Layout(">i")
_SIZE_AND_CORRELATION: Final = Layout(">ii")
_HEADER_V0_SIZE: Final = 8
_HEADER_V1_SIZE: Final = 10
_NEVER: Final = 32767

# The first version of each API whose header has tagged fields.
_TAGGED_REQUEST: Final = {
    int(key): _NEVER if versions.first_flexible is None else versions.first_flexible
    for key, versions in API_VERSIONS.items()
}
_TAGGED_RESPONSE: Final = _TAGGED_REQUEST | {int(ApiKey.API_VERSIONS): _NEVER}
_CONTROLLED_SHUTDOWN: Final = int(ApiKey.CONTROLLED_SHUTDOWN)


_new = tuple.__new__  # half the time of the class's own


class RequestHeader(NamedTuple):
    """A request's header. `client_id` is None if it was null or could not be read."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """Read the header of a frame (without size prefix); returns it and the position of the body.

    For an unknown API only the fixed part is read, since the header's version is not known. A
    version that is too new is read like the newest known one (KIP-511: ApiVersions must get a
    response).

    Raises:
        ProtocolViolation: the frame ends inside the header, or the header is invalid.
    """
    try:
        api_key, version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(frame)
        first_tagged = _TAGGED_REQUEST.get(api_key)
        if first_tagged is None or _has_no_client_id(api_key, version):
            return RequestHeader(api_key, version, correlation_id, None), _HEADER_V0_SIZE
        (size,) = _I16.unpack_from(frame, _HEADER_V0_SIZE)
        position, client_id = _HEADER_V1_SIZE, None
        if size >= 0:
            position += size
            try:
                client_id = str(frame[_HEADER_V1_SIZE:position], "utf-8")
            except UnicodeDecodeError:
                client_id = replaced_text(frame[_HEADER_V1_SIZE:position].tobytes())
        if size < -1 or position > len(frame):
            raise ProtocolViolation(f"a client id of {size} bytes in {len(frame)} bytes")
        if version >= first_tagged:
            # Almost always without tagged fields: one zero byte.
            if frame[position] == 0:
                position += 1
            else:
                _, position = skip_tagged_fields(frame, position)
    except (StructError, IndexError) as error:
        raise ProtocolViolation(f"request header in {len(frame)} bytes: {error}") from error
    header = _new(RequestHeader, (api_key, version, correlation_id, client_id))
    return header, position


def encode_request(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The whole frame of a request, size prefix first. Raises as `encode`."""
    api_key = message.API_KEY
    name = b"" if client_id is None else client_id.encode()
    parts: list[Buffer] = [b"", name]
    if version >= _TAGGED_REQUEST[api_key]:
        parts.append(b"\0")
    encode(message, version, parts)
    size = sum(map(len, parts))
    if _has_no_client_id(api_key, version):
        parts[:2] = [_REQUEST.pack(size - len(name) + 8, api_key, version, correlation_id, 0)[:-2]]
    else:
        name_size = -1 if client_id is None else len(name)
        parts[0] = _REQUEST.pack(size + 10, api_key, version, correlation_id, name_size)
    return b"".join(parts)


def encode_response(
    message: Message,
    api_key: int,
    version: int,
    correlation_id: int,
    parts: list[Buffer] | None = None,
) -> list[Buffer]:
    """The whole frame of a response, size prefix first, as buffers; `parts` are those of the
    message, if it is encoded already. Raises as `encode`."""
    if parts is None:
        parts = []
        try:
            encoder(type(message), version)(message, parts)
        except ENCODING_ERRORS as error:
            raise unencodable(message, version, error) from error
    size = 4 + (len(parts[0]) if len(parts) == 1 else sum(map(len, parts)))
    if version >= _TAGGED_RESPONSE[api_key]:
        parts[0] = _SIZE_AND_CORRELATION.pack(size + 1, correlation_id) + b"\0" + parts[0]
    else:
        parts[0] = _SIZE_AND_CORRELATION.pack(size, correlation_id) + parts[0]
    return parts


def sliced_encode_response(
    message: Message, header: RequestHeader
) -> Generator[int, None, list[Buffer]]:
    """The response of a request, as `encode_response`, by a generator that yields its costs."""
    parts: list[Buffer] = []
    version = header.api_version
    try:
        yield from sliced_encoder(type(message), version)(message, parts)
    except ENCODING_ERRORS as error:
        raise unencodable(message, version, error) from error
    return encode_response(message, header.api_key, version, header.correlation_id, parts)


def decode_response(cls: type[M], version: int, frame: Buffer) -> tuple[int, M]:
    """Read a response frame (without size prefix); returns the correlation id and the message.

    Raises:
        ProtocolViolation: the frame is not such a response.
        ApiError: UNSUPPORTED_VERSION.
    """
    view = memoryview(frame)
    position = 4
    try:
        (correlation_id,) = _I32.unpack_from(view)
        if version >= _TAGGED_RESPONSE[cls.API_KEY]:
            _, position = skip_tagged_fields(view, position)
    except (StructError, IndexError) as error:
        raise ProtocolViolation(f"response header in {len(view)} bytes: {error}") from error
    message, _ = decode(cls, version, view, position)
    return correlation_id, message


def _has_no_client_id(api_key: int, version: int) -> bool:
    return version == 0 and api_key == _CONTROLLED_SHUTDOWN
