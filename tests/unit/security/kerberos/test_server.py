"""The broker's half of GSSAPI: every state with every kind of token."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError
from kafkapy.security.kerberos.client import gssapi_conversation
from kafkapy.security.kerberos.gss_context import CHOICE, OFFER
from kafkapy.security.kerberos.names import NoLocalName
from kafkapy.security.kerberos.server import TRANSITIONS, GssapiServer, GssEvent, GssState
from kafkapy.security.sasl.server import RefusedSilently
from tests.harness.security.scripted_gss import ScriptedContext

WRAPPED_OFFER = b"wrapped " + OFFER
MUTUAL = (b"AP-REQ", b"AP-REP")


def short(principal: str) -> str:
    if not principal.endswith("@R"):
        raise NoLocalName(f"No rules apply to {principal}")
    return principal.removesuffix("@R")


def server(*script: tuple[bytes, bytes], initiator: str = "alice@R") -> GssapiServer:
    return GssapiServer(ScriptedContext(*script, initiator=initiator), short)


def in_state(state: GssState) -> GssapiServer:
    """A login that has come so far."""
    one = server(MUTUAL)
    for token in (b"AP-REQ", b"", b"wrapped " + CHOICE):
        if one.state is state:
            break
        one.evaluate(token)
    assert one.state is state
    return one


def test_a_login() -> None:
    one = server(MUTUAL)
    assert one.evaluate(b"AP-REQ") == b"AP-REP"
    assert one.evaluate(b"") == WRAPPED_OFFER
    assert (one.username, one.state) == (None, GssState.CHOICE)
    assert one.evaluate(b"wrapped " + CHOICE) is None
    assert (one.username, one.lifetime_ms, one.state) == ("alice", None, GssState.COMPLETE)


def test_a_client_that_does_not_ask_who_the_broker_is() -> None:
    one = server((b"AP-REQ", b""))
    assert one.evaluate(b"AP-REQ") == WRAPPED_OFFER
    assert one.evaluate(b"wrapped " + CHOICE) is None
    assert one.username == "alice"


def test_kerberos_may_take_several_tokens() -> None:
    one = server((b"1", b"one"), (b"2", b""), (b"3", b"three"))
    assert [one.evaluate(token) for token in (b"1", b"2", b"3")] == [b"one", b"", b"three"]
    assert one.state is GssState.READY


@pytest.mark.parametrize("wanted", [b"alice@R", b"bob@R"])
def test_one_is_who_one_is_whatever_one_says(wanted: bytes) -> None:
    one = in_state(GssState.CHOICE)
    assert one.evaluate(b"wrapped " + CHOICE + wanted) is None
    assert one.username == "alice"


@pytest.mark.parametrize(
    ("state", "token", "said"),
    [
        (GssState.CONTEXT, b"", "b'' is no token"),
        (GssState.CONTEXT, b"garbage", "is no token"),
        (GssState.READY, b"more", "4 bytes came where nothing was to be said"),
        (GssState.CHOICE, b"", "invalid signature"),
        (GssState.CHOICE, CHOICE, "invalid signature"),
        (GssState.CHOICE, b"wrapped \x02\0\0\0", "unsupported protection: 02"),
        (GssState.CHOICE, b"wrapped ", "unsupported protection: none"),
        (GssState.COMPLETE, b"", "over already"),
    ],
)
def test_what_is_refused(state: GssState, token: bytes, said: str) -> None:
    one = in_state(state)
    with pytest.raises(RefusedSilently, match=said):
        one.evaluate(token)
    assert one.state is state


def test_a_principal_that_is_no_user() -> None:
    one = server(MUTUAL, initiator="alice@ELSEWHERE")
    one.evaluate(b"AP-REQ")
    one.evaluate(b"")
    with pytest.raises(RefusedSilently, match="No rules apply to alice@ELSEWHERE"):
        one.evaluate(b"wrapped " + CHOICE)
    assert one.username is None


def test_the_table_has_a_way_out_of_each_state_but_the_last() -> None:
    assert {state for state, _ in TRANSITIONS} == set(GssState) - {GssState.COMPLETE}
    assert {event for _, event in TRANSITIONS} == set(GssEvent)


def test_both_halves_understand_each_other() -> None:
    one = server(MUTUAL)
    talk = gssapi_conversation(lambda: ScriptedContext((b"", b"AP-REQ"), (b"AP-REP", b"")))
    said: bytes | None = next(talk)
    while said is not None:
        heard = one.evaluate(said)
        said = None if heard is None else talk.send(heard)
    with pytest.raises(StopIteration):
        talk.send(b"")
    assert one.username == "alice"


def test_the_client_hears_of_an_offer_it_cannot_meet() -> None:
    talk = gssapi_conversation(lambda: ScriptedContext((b"", b"AP-REQ"), (b"AP-REP", b"")))
    assert next(talk) == b"AP-REQ"
    assert talk.send(b"AP-REP") == b""
    with pytest.raises(ApiError, match="asks for a security layer"):
        talk.send(b"wrapped \x06\0\0\0")
