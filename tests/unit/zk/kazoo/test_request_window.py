"""Order of requests in the window, and after a lost connection."""

from __future__ import annotations

from kafkapy.zk.kazoo.request_window import RequestWindow


def sent(window: RequestWindow[str]) -> str:
    """Everything that may be sent now."""
    found = ""
    while (request := window.next()) is not None:
        found += request
    return found


def window(requests: str, size: int = 3) -> RequestWindow[str]:
    made: RequestWindow[str] = RequestWindow(size)
    for request in requests:
        made.push(request)
    return made


def test_nothing_is_sent_before_it_is_open() -> None:
    shut = window("ab")
    assert sent(shut) == ""
    shut.open()
    assert sent(shut) == "ab"


def test_only_a_window_is_in_flight() -> None:
    full = window("abcdef")
    full.open()
    assert sent(full) == "abc"
    assert full.complete("b")
    assert sent(full) == "d"
    assert not full.complete("b")  # an answer too many makes no room
    assert sent(full) == ""


def test_what_was_lost_goes_first_and_in_its_order() -> None:
    broken = window("abcdef")
    broken.open()
    assert sent(broken) == "abc"
    broken.shut()
    for request in "abc":
        assert broken.complete(request)
        broken.requeue(request)
    broken.push("g")
    assert sent(broken) == ""
    broken.open(["!"])
    assert sent(broken) == "!ab"
    for request in "!ab":
        broken.complete(request)
    assert sent(broken) == "cde"


def test_draining_takes_every_request_oldest_first() -> None:
    ended = window("abcde", size=2)
    ended.open()
    assert sent(ended) == "ab"
    ended.complete("a")
    ended.requeue("a")
    ended.shut()
    assert ended.drain() == ["b", "a", "c", "d", "e"]
    ended.open()
    assert sent(ended) == ""
