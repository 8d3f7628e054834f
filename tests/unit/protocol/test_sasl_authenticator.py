"""The broker's side of a SASL conversation: every state with every kind of frame."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode, ProtocolViolation
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages import response_class
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kafkapy.protocol.sasl_authenticator import (
    TRANSITIONS,
    SaslAuthenticator,
    SaslEvent,
    SaslLogin,
    SaslMechanism,
    SaslState,
)
from kafkapy.protocol.schema import Message
from kafkapy.security.sasl.client import conversation
from kafkapy.security.sasl.jaas import Credentials
from kafkapy.security.sasl.scram import ScramCredential, ScramMechanism
from kafkapy.security.sasl.server import PlainServer, ScramServer, TokenCredential

SHA_256 = ScramMechanism.SCRAM_SHA_256
CREDENTIAL = ScramCredential.of(
    SHA_256, b"salt", SHA_256.salted_password("secret", b"salt", 4096), 4096
)
GENERIC = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism"
)


def mechanisms(session_max_ms: int = 0) -> dict[str, SaslMechanism]:
    users = {"alice": "secret", "bob": "other"}
    known = {"alice": CREDENTIAL}
    return {
        "PLAIN": SaslMechanism(lambda: PlainServer(users), session_max_ms),
        "SCRAM-SHA-256": SaslMechanism(
            lambda: ScramServer(SHA_256, known.get, "nonce"), session_max_ms
        ),
    }


class Client:
    """Says things to an authenticator and reads its answers."""

    def __init__(self, session_max_ms: int = 0, session: SaslLogin | None = None) -> None:
        self.authenticator = SaslAuthenticator(mechanisms(session_max_ms), session)
        self.failure: str | None = None

    def says(self, message: Message, version: int) -> Any:
        """The response; None if there is none."""
        frame = memoryview(encode_request(message, version, 7, "c"))[4:]
        step = self.authenticator.receive(frame)
        assert step is not None
        self.failure = step.failure
        if not step.reply:
            return None
        answer = memoryview(b"".join(step.reply))[4:]
        correlation_id, response = decode_response(response_class(message.API_KEY), version, answer)
        assert correlation_id == 7
        return response

    def shakes_hands(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.says(SaslHandshakeRequest(mechanism=mechanism), version)

    def shows(self, token: bytes, version: int = 2) -> Any:
        return self.says(SaslAuthenticateRequest(auth_bytes=token), version)

    @property
    def state(self) -> SaslState:
        return self.authenticator.state


def api_versions(version: int) -> memoryview:
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    frame = bytearray(encode_request(request, min(version, 4), 7, "c"))
    frame[6:8] = version.to_bytes(2, "big")
    return memoryview(bytes(frame))[4:]


def test_a_client_whose_software_has_no_valid_name_asks_again() -> None:
    """librdkafka falls back to version 0 then."""
    client = Client()
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1.0_beta")
    frame = memoryview(encode_request(request, 3, 7, "c"))[4:]
    assert client.authenticator.receive(frame) is None
    assert client.state is SaslState.HANDSHAKE_OR_VERSIONS_REQUEST
    assert client.authenticator.receive(api_versions(0)) is None
    assert client.state is SaslState.HANDSHAKE_REQUEST
    assert client.shakes_hands().error_code == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_plain_in_requests(version: int) -> None:
    client = Client()
    response = client.shakes_hands()
    assert (response.error_code, response.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256"])
    response = client.shows(b"\0alice\0secret", version)
    assert (response.error_code, response.error_message) == (0, "")
    assert (response.auth_bytes, response.session_lifetime_ms) == (b"", 0)
    assert client.authenticator.login == SaslLogin("alice", "PLAIN")
    assert client.state is SaslState.COMPLETE


def test_plain_in_bare_frames() -> None:
    client = Client(session_max_ms=1000)
    assert client.shakes_hands(version=0).error_code == 0
    step = client.authenticator.receive(memoryview(b"\0alice\0secret"))
    assert step is not None
    assert step.reply == [bytes(4)]
    # Nothing tells it that its session ends; it does all the same.
    assert client.authenticator.login == SaslLogin("alice", "PLAIN", 1000)


class Silent:
    """Takes the first token, and says nothing to it."""

    username = "alice"
    lifetime_ms = None

    def evaluate(self, token: bytes) -> None:
        """Nothing."""


def test_no_answer_is_no_frame_but_an_answered_request() -> None:
    for version, expected in ((0, []), (1, [SaslAuthenticateResponse(error_message="")])):
        authenticator = SaslAuthenticator({"SILENT": SaslMechanism(Silent)})
        shake = encode_request(SaslHandshakeRequest(mechanism="SILENT"), version, 7, "c")
        authenticator.receive(memoryview(shake)[4:])
        token = b"token"
        if version:
            token = encode_request(SaslAuthenticateRequest(auth_bytes=token), 2, 7, "c")[4:]
        step = authenticator.receive(memoryview(token))
        assert step is not None
        assert authenticator.login == SaslLogin("alice", "SILENT")
        frames = [memoryview(b"".join(step.reply))[4:]] if step.reply else []
        answers = [decode_response(SaslAuthenticateResponse, 2, each)[1] for each in frames]
        assert answers == expected


def test_a_wrong_password_in_a_bare_frame_has_no_answer() -> None:
    client = Client()
    client.shakes_hands(version=0)
    step = client.authenticator.receive(memoryview(b"\0alice\0wrong"))
    assert step == ([], "Authentication failed: Invalid username or password")
    assert client.authenticator.has_failed


def test_scram_takes_two_tokens() -> None:
    client = Client()
    client.shakes_hands("SCRAM-SHA-256")
    talk = conversation("SCRAM-SHA-256", Credentials("alice", "secret"), "n")
    challenge = client.shows(next(talk))
    assert client.state is SaslState.AUTHENTICATE
    assert client.authenticator.login is None
    final = client.shows(talk.send(challenge.auth_bytes))
    with pytest.raises(StopIteration):
        talk.send(final.auth_bytes)
    assert client.authenticator.login == SaslLogin("alice", "SCRAM-SHA-256")


def test_refusals_that_the_client_may_read() -> None:
    client = Client()
    client.shakes_hands()
    response = client.shows(b"\0alice\0wrong")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "Authentication failed: Invalid username or password"
    assert client.failure == response.error_message
    assert client.state is SaslState.FAILED


def test_other_refusals_tell_the_client_nothing() -> None:
    client = Client()
    client.shakes_hands("SCRAM-SHA-256")
    response = client.shows(b"n,,n=nobody,r=x")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == f"{GENERIC} SCRAM-SHA-256"
    assert client.failure == f"{GENERIC} SCRAM-SHA-256: Authentication failed: Invalid user" + (
        " credentials"
    )


def test_a_mechanism_that_is_not_enabled() -> None:
    client = Client()
    response = client.shakes_hands("GSSAPI")
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    assert client.failure == "Unsupported SASL mechanism GSSAPI"


def test_versions_are_asked_for_once_and_unknown_ones_again() -> None:
    authenticator = SaslAuthenticator(mechanisms())
    assert authenticator.receive(api_versions(99)) is None
    assert authenticator.state is SaslState.HANDSHAKE_OR_VERSIONS_REQUEST
    assert authenticator.receive(api_versions(3)) is None
    assert authenticator.state is SaslState.HANDSHAKE_REQUEST
    step = authenticator.receive(api_versions(3))
    assert step == ([], "Unexpected VERSIONS during SASL state HANDSHAKE_REQUEST")


@pytest.mark.parametrize("after_versions", [False, True])
def test_other_requests_come_after_the_login(after_versions: bool) -> None:
    client = Client()
    if after_versions:
        client.authenticator.receive(api_versions(3))
    assert client.says(MetadataRequest(), 9) is None
    assert client.failure == "Unexpected Kafka request of type METADATA during SASL handshake."
    other = Client()
    other.shakes_hands()
    assert other.says(MetadataRequest(), 9) is None
    assert other.failure == "Unexpected Kafka request of type METADATA during SASL authentication."


def test_an_api_that_nobody_knows() -> None:
    step = SaslAuthenticator(mechanisms()).receive(memoryview(b"\x03\xe8\0\0\0\0\0\1"))
    assert step == ([], "Unexpected Kafka request of type 1000 during SASL handshake.")


@pytest.mark.parametrize("api", [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE])
def test_a_version_that_is_not_served(api: ApiKey) -> None:
    client = Client()
    if api is ApiKey.SASL_AUTHENTICATE:
        client.shakes_hands()
    frame = int(api).to_bytes(2, "big") + b"\0\x09" + bytes(4) + b"\xff\xff\0\0\0"
    step = client.authenticator.receive(memoryview(frame))
    assert step == ([], f"Version 9 is not supported for apiKey {api.name}")


def test_what_is_no_request_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation):
        SaslAuthenticator(mechanisms()).receive(memoryview(b"\0"))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_session_ends_also_for_who_cannot_be_told(version: int) -> None:
    client = Client(session_max_ms=5000)
    client.shakes_hands()
    response = client.shows(b"\0alice\0secret", version)
    if version:
        assert response.session_lifetime_ms == 5000
    assert client.authenticator.login == SaslLogin("alice", "PLAIN", 5000)


@pytest.mark.parametrize(
    ("session_max_ms", "good_for_ms", "version", "lifetime_ms", "told_ms"),
    [
        (0, 700, 2, 700, 700),
        (5000, 700, 2, 700, 700),
        (500, 700, 2, 500, 500),
        (0, 0, 2, 0, 0),  # over already: as Kafka tells it, and has it end
        (500, 700, 0, 500, None),
    ],
)
def test_a_session_ends_with_what_was_shown(
    session_max_ms: int, good_for_ms: int, version: int, lifetime_ms: int, told_ms: int | None
) -> None:
    class Passing(PlainServer):
        lifetime_ms = good_for_ms

    client = Client()
    mechanism = SaslMechanism(lambda: Passing({"alice": "secret"}), session_max_ms)
    client.authenticator = SaslAuthenticator({"PLAIN": mechanism})
    client.shakes_hands()
    response = client.shows(b"\0alice\0secret", version)
    if told_ms is not None:
        assert response.session_lifetime_ms == told_ms
    assert client.authenticator.login == SaslLogin("alice", "PLAIN", lifetime_ms)


def test_a_session_goes_on_for_the_same_user() -> None:
    client = Client(5000, SaslLogin("alice", "PLAIN", 5000))
    assert client.shakes_hands().error_code == 0
    assert client.shows(b"\0alice\0secret").session_lifetime_ms == 5000
    assert client.authenticator.login is not None


def test_a_session_does_not_change_hands() -> None:
    client = Client(5000, SaslLogin("alice", "PLAIN", 5000))
    client.shakes_hands()
    response = client.shows(b"\0bob\0other")
    assert response.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert client.authenticator.login is None


def test_a_session_does_not_change_its_mechanism() -> None:
    client = Client(5000, SaslLogin("alice", "PLAIN", 5000))
    assert client.shakes_hands("SCRAM-SHA-256").error_code == 0
    assert client.state is SaslState.REAUTH_BAD_MECHANISM
    assert client.shows(b"n,,n=alice,r=x") is None
    assert client.failure == (
        "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for"
        " re-authentication of mechanism 'PLAIN'"
    )


@pytest.mark.parametrize("state", SaslState)
@pytest.mark.parametrize("event", SaslEvent)
def test_the_table_is_whole(state: SaslState, event: SaslEvent) -> None:
    after = TRANSITIONS.get((state, event))
    if state in (SaslState.COMPLETE, SaslState.FAILED):
        assert after is None
    elif event is SaslEvent.REFUSAL:
        assert after is SaslState.FAILED
    elif after is SaslState.COMPLETE:
        assert (state, event) == (SaslState.AUTHENTICATE, SaslEvent.LAST_TOKEN)


@pytest.mark.parametrize(
    ("session_max_ms", "version", "lifetime_ms"),
    [(0, 2, 700), (500, 2, 500), (900, 2, 700), (500, 0, 500)],
)
def test_a_session_ends_with_its_token(session_max_ms: int, version: int, lifetime_ms: int) -> None:
    """Whether the client can be told of it or not."""
    tokens = {"id": TokenCredential("alice", CREDENTIAL, 700)}
    begin = partial(ScramServer, SHA_256, {}.get, "nonce", tokens.get)
    client = Client()
    client.authenticator = SaslAuthenticator(
        {"SCRAM-SHA-256": SaslMechanism(begin, session_max_ms)}
    )
    client.shakes_hands("SCRAM-SHA-256")
    talk = conversation("SCRAM-SHA-256", Credentials("id", "secret", is_token=True), "n")
    challenge = client.shows(next(talk), version)
    final = client.shows(talk.send(bytes(challenge.auth_bytes)), version)
    assert final.session_lifetime_ms == (lifetime_ms if version else 0)
    assert client.authenticator.login == SaslLogin("alice", "SCRAM-SHA-256", lifetime_ms)
    assert client.authenticator.is_token
