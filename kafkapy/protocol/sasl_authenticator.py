"""The broker's side of a SASL conversation, sans-I/O: frames in, responses out
(`SaslServerAuthenticator`).

    step = authenticator.receive(frame)       # None: an ApiVersions request, answered as usual
    if authenticator.login is not None: ...   # the client is authenticated

After SaslHandshake v0 tokens are bare frames, after v1 SaslAuthenticate requests (KIP-152). To
renew a session, another conversation begins with SaslHandshake (KIP-368). `TRANSITIONS` has all
valid transitions; any other ends the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.client_software import has_valid_software_name
from kafkapy.protocol.compile import decoder
from kafkapy.protocol.headers import RequestHeader, decode_request_header, encode_response
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.protocol.primitives import Buffer
from kafkapy.protocol.schema import Message
from kafkapy.security.sasl.server import Refused, RefusedSilently, SaslServer, ScramServer


class SaslState(Enum):
    """States: the frame that is expected next."""

    HANDSHAKE_OR_VERSIONS_REQUEST = auto()
    HANDSHAKE_REQUEST = auto()
    AUTHENTICATE = auto()
    REAUTH_BAD_MECHANISM = auto()
    COMPLETE = auto()
    FAILED = auto()


class SaslEvent(Enum):
    """Events: the kinds of received frames."""

    VERSIONS = auto()
    UNKNOWN_VERSIONS = auto()
    """ApiVersions in an unsupported version, or with an invalid software name. The client sends
    another one."""
    MECHANISM = auto()
    OTHER_MECHANISM = auto()
    """A mechanism that is not that of the session to be renewed."""
    TOKEN = auto()
    LAST_TOKEN = auto()
    REFUSAL = auto()


_FIRST: Final = SaslState.HANDSHAKE_OR_VERSIONS_REQUEST
_SECOND: Final = SaslState.HANDSHAKE_REQUEST

TRANSITIONS: Final[dict[tuple[SaslState, SaslEvent], SaslState]] = {
    (_FIRST, SaslEvent.VERSIONS): _SECOND,
    (_FIRST, SaslEvent.UNKNOWN_VERSIONS): _FIRST,
    (_FIRST, SaslEvent.MECHANISM): SaslState.AUTHENTICATE,
    (_SECOND, SaslEvent.MECHANISM): SaslState.AUTHENTICATE,
    (_SECOND, SaslEvent.OTHER_MECHANISM): SaslState.REAUTH_BAD_MECHANISM,
    (SaslState.AUTHENTICATE, SaslEvent.TOKEN): SaslState.AUTHENTICATE,
    (SaslState.AUTHENTICATE, SaslEvent.LAST_TOKEN): SaslState.COMPLETE,
    **{
        (state, SaslEvent.REFUSAL): SaslState.FAILED
        for state in SaslState
        if state not in (SaslState.COMPLETE, SaslState.FAILED)
    },
}


class SaslMechanism(NamedTuple):
    """A mechanism of a listener: the factory of logins, and the longest session (0: unlimited)."""

    begin: Callable[[], SaslServer]
    session_max_ms: int = 0


class SaslLogin(NamedTuple):
    """A login: principal, mechanism, and its lifetime (None: unlimited)."""

    username: str
    mechanism: str
    session_lifetime_ms: int | None = None


class SaslStep(NamedTuple):
    """A step: bytes to send (may be empty), and the reason if the connection ends after them."""

    reply: list[Buffer]
    failure: str | None = None


class _Fault(Exception):
    """A frame that ends the connection."""

    def __init__(self, reason: str, reply: list[Buffer] | None = None) -> None:
        super().__init__(reason)
        self.reply = reply or []


class SaslAuthenticator:
    """One conversation. `login` is None until it has succeeded; `mechanism` is empty until one of
    the listener's was chosen."""

    def __init__(
        self, mechanisms: Mapping[str, SaslMechanism], session: SaslLogin | None = None
    ) -> None:
        """`mechanisms` are those of the listener; `session` is the session to renew, if any."""
        self.state = _FIRST if session is None else _SECOND
        self.login: SaslLogin | None = None
        self._mechanisms = mechanisms
        self._session = session
        self.mechanism = ""  # until one is agreed on
        self._server: SaslServer | None = None
        self._has_headers = False  # tokens come as SaslAuthenticate requests

    @property
    def has_failed(self) -> bool:
        """Whether the conversation has failed: no more frames may be received."""
        return self.state is SaslState.FAILED

    @property
    def is_token(self) -> bool:
        """Whether the client uses a delegation token."""
        return isinstance(self._server, ScramServer) and self._server.is_token

    def receive(self, frame: memoryview) -> SaslStep | None:
        """Take one frame, in order. Returns None for an ApiVersions request, which the caller
        answers.

        Raises:
            ProtocolViolation: the frame is not a request.
        """
        assert self.state not in (SaslState.COMPLETE, SaslState.FAILED), self.state
        try:
            if self.state is SaslState.AUTHENTICATE:
                return SaslStep(
                    self._token_request(frame) if self._has_headers else self._raw_token(frame)
                )
            if self.state is SaslState.REAUTH_BAD_MECHANISM:
                raise _Fault(self._bad_mechanism_message())
            return self._handshake_or_versions_request(frame)
        except _Fault as fault:
            self._transition(SaslEvent.REFUSAL)
            return SaslStep(fault.reply, str(fault))

    def _transition(self, event: SaslEvent) -> None:
        after = TRANSITIONS.get((self.state, event))
        if after is None:
            raise _Fault(f"Unexpected {event.name} during SASL state {self.state.name}")
        self.state = after

    # before the tokens

    def _handshake_or_versions_request(self, frame: memoryview) -> SaslStep | None:
        header, body = decode_request_header(frame)
        if header.api_key == ApiKey.API_VERSIONS:
            is_served = _has_served_version(header, frame, body)
            self._transition(SaslEvent.VERSIONS if is_served else SaslEvent.UNKNOWN_VERSIONS)
            return None
        if header.api_key != ApiKey.SASL_HANDSHAKE:
            raise _Fault(_unexpected_request(header, "handshake"))
        request = _decoded(SaslHandshakeRequest, header, frame, body)
        enabled = list(self._mechanisms)
        if request.mechanism not in enabled:
            refusal = SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled
            )
            raise _Fault(
                f"Unsupported SASL mechanism {request.mechanism}", _encoded(refusal, header)
            )
        self.mechanism = request.mechanism
        self._has_headers = header.api_version >= 1
        if self._session is not None and self._session.mechanism != request.mechanism:
            self._transition(SaslEvent.OTHER_MECHANISM)
        else:
            self._server = self._mechanisms[request.mechanism].begin()
            self._transition(SaslEvent.MECHANISM)
        return SaslStep(_encoded(SaslHandshakeResponse(mechanisms=enabled), header))

    def _bad_mechanism_message(self) -> str:
        assert self._session is not None
        return (
            f"SASL mechanism '{self.mechanism}' requested by client is not supported for"
            f" re-authentication of mechanism '{self._session.mechanism}'"
        )

    # the tokens

    def _raw_token(self, frame: memoryview) -> list[Buffer]:
        try:
            answer = self._evaluate(bytes(frame))
        except (Refused, RefusedSilently) as refusal:
            raise _Fault(str(refusal)) from None
        return [] if answer is None else [len(answer).to_bytes(4, "big") + answer]

    def _token_request(self, frame: memoryview) -> list[Buffer]:
        header, body = decode_request_header(frame)
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            raise _Fault(_unexpected_request(header, "authentication"))
        request = _decoded(SaslAuthenticateRequest, header, frame, body)
        try:
            answer = self._evaluate(bytes(request.auth_bytes))
        except Refused as refusal:
            raise _Fault(str(refusal), _refusal(str(refusal), header)) from None
        except RefusedSilently as refusal:
            operation = "authentication" if self._session is None else "re-authentication"
            message = (
                f"Authentication failed during {operation} due to invalid credentials with SASL"
                f" mechanism {self.mechanism}"
            )
            raise _Fault(f"{message}: {refusal}", _refusal(message, header)) from None
        # As in Kafka, 0 stands for a session without end, and also for one that has already ended.
        lifetime_ms = (self.login.session_lifetime_ms or 0) if self.login is not None else 0
        response = SaslAuthenticateResponse(
            error_message="", auth_bytes=answer or b"", session_lifetime_ms=lifetime_ms
        )
        return _encoded(response, header)

    def _evaluate(self, token: bytes) -> bytes | None:
        """The mechanism's answer, if it has one. Raises Refused, RefusedSilently."""
        assert self._server is not None
        answer = self._server.evaluate(token)
        username, session = self._server.username, self._session
        if username is None:
            self._transition(SaslEvent.TOKEN)
            return answer
        if session is not None and session.username != username:
            raise Refused(
                "Cannot change principals during re-authentication from"
                f" User.{session.username}: User.{username}"
            )
        self.login = SaslLogin(username, self.mechanism, self._session_lifetime_ms())
        self._transition(SaslEvent.LAST_TOKEN)
        return answer

    def _session_lifetime_ms(self) -> int | None:
        """The shorter of the listener's limit and the lifetime of the client's credentials. It also
        applies to clients that cannot receive it (SaslHandshake v0), as in Kafka."""
        assert self._server is not None
        allowed_ms = self._mechanisms[self.mechanism].session_max_ms or None
        credentials_ms = self._server.lifetime_ms
        bounds = [bound for bound in (allowed_ms, credentials_ms) if bound is not None]
        return min(bounds) if bounds else None


def _has_served_version(header: RequestHeader, frame: memoryview, body: int) -> bool:
    version = header.api_version
    if not 0 <= version <= ApiVersionsRequest.MAX_VERSION:
        return False
    request, _ = decoder(ApiVersionsRequest, version)(frame, body)
    return has_valid_software_name(request, version)


def _unexpected_request(header: RequestHeader, operation: str) -> str:
    known = header.api_key in ApiKey.__members__.values()
    name = ApiKey(header.api_key).name if known else str(header.api_key)
    return f"Unexpected Kafka request of type {name} during SASL {operation}."


def _decoded(cls: type[Message], header: RequestHeader, frame: memoryview, body: int) -> Any:
    if not cls.MIN_VERSION <= header.api_version <= cls.MAX_VERSION:
        name = ApiKey(header.api_key).name
        raise _Fault(f"Version {header.api_version} is not supported for apiKey {name}")
    message, _ = decoder(cls, header.api_version)(frame, body)
    return message


def _encoded(response: Message, header: RequestHeader) -> list[Buffer]:
    return encode_response(response, header.api_key, header.api_version, header.correlation_id)


def _refusal(message: str, header: RequestHeader) -> list[Buffer]:
    response = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message
    )
    return _encoded(response, header)
