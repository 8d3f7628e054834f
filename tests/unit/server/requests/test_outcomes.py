"""A pending response is given once, to whoever asks for it, early or late, or to nobody."""

from __future__ import annotations

import weakref

from kafkapy.protocol.headers import RequestHeader
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import Pending


def test_whoever_asks_first_or_last_gets_the_first_response() -> None:
    early: list[str] = []
    pending = Pending()
    pending.when_complete(early.append)
    assert early == []
    pending.complete("answer")
    pending.complete("timeout")
    late: list[str] = []
    pending.when_complete(late.append)
    assert (early, late, pending.response) == (["answer"], ["answer"], "answer")


def test_an_abandoned_response_goes_nowhere() -> None:
    abandoned: list[int] = []
    heard: list[str] = []
    pending = Pending()
    pending.on_abandon = lambda: abandoned.append(1)
    pending.when_complete(heard.append)
    pending.abandon()
    pending.abandon()
    pending.complete("late")
    assert (abandoned, heard) == ([1], [])


def test_what_an_abandoned_response_comes_to_follow_is_abandoned_too() -> None:
    abandoned: list[int] = []
    waiting = Pending()
    waiting.on_abandon = lambda: abandoned.append(1)
    pending = Pending()
    pending.abandon()
    pending.complete_with(waiting)
    assert (abandoned, waiting.done) == ([1], True)


def test_what_is_answered_cannot_be_abandoned() -> None:
    pending = Pending()
    pending.on_abandon = lambda: (_ for _ in ()).throw(AssertionError("it was answered"))
    pending.complete("answer")
    pending.abandon()
    assert pending.done


def test_only_who_says_so_blocks_the_connection() -> None:
    assert not Pending().blocks
    assert Pending(blocks=True).blocks


def test_a_context_knows_the_version_asked() -> None:
    header = RequestHeader(1, 12, 7, "me")
    context = RequestContext(header, "10.0.0.1", "PLAINTEXT")
    assert (context.version, context.client_host, context.listener) == (12, "10.0.0.1", "PLAINTEXT")


def test_once_done_it_keeps_nobody_alive() -> None:
    """Not even until the garbage collector looks: there is one for each produce with acks=all."""

    class Asker:
        def hear(self, response: object) -> None:
            self.heard = response

    for end in (lambda pending: pending.complete("answer"), Pending.abandon):
        pending, asker = Pending(), Asker()
        asker.pending = pending  # type: ignore[attr-defined]
        gone = weakref.ref(asker)
        pending.on_abandon = lambda asker=asker: asker.hear(None)  # type: ignore[misc]
        pending.when_complete(asker.hear)
        end(pending)
        del asker
        assert gone() is None


def test_a_pending_answer_follows_another_to_its_response_or_to_its_end() -> None:
    outer, inner = Pending(), Pending()
    outer.complete_with(inner)
    assert not outer.done
    inner.complete("response")
    assert outer.response == "response"
    at_once = Pending()
    at_once.complete_with("response")
    assert at_once.response == "response"
    left, asked = Pending(), Pending()
    abandoned: list[bool] = []
    asked.on_abandon = lambda: abandoned.append(True)
    left.complete_with(asked)
    left.abandon()
    assert abandoned == [True]
