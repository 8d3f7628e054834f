"""The outcomes of a handler.

A handler is a function of a context and a request. It returns the response, a `Pending` that is
completed later, or `NO_RESPONSE` (a produce with acks=0). If its work grows with the rows of the
request, the handler is a generator function (`Work`, see `turns`). The function that makes the
response of a `Pending` may also be one. A handler that waits for ZooKeeper or the controller
returns a coroutine (`ResponseCoroutine`), which runs in the background
(`handler_table.in_background`). The position of the response on the connection is fixed when the
handler is called.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, Union, overload

from kafkapy.common.errors import ProtocolViolation

if TYPE_CHECKING:
    from kafkapy.protocol.schema import Message

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
M = TypeVar("M", bound="Message")
N = TypeVar("N", bound="Message")

_UNANSWERED: Any = None

ResponseCoroutine = Coroutine[Any, Any, R]
"""A coroutine that returns a response, or the work that creates it."""

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of unauthenticated clients (`KafkaPrincipal.ANONYMOUS`)."""


class ThreadCall(NamedTuple):
    """A function for another thread. The work that yields it continues when the function has
    returned. With `may_drop`, the function is not called if its connection is closed before."""

    function: Callable[[], object]
    may_drop: bool


Work = Generator[int | ThreadCall, Any, R]
"""Yields costs in units, or a function for another thread, and is sent the finished future of that
function. Returns its own result."""


class Pending(Generic[R_co]):
    """A response that will come later.

    `blocks` stops the connection from handling further requests meanwhile, as Kafka does for every
    request. Here only three kinds need it: fetches, whose responses are large; commits of offsets,
    which clients may fetch at once; and requests handled in slices.

    `seconds` is the time that the slices took on the event loop. A completed `Pending` drops its
    callbacks: request and callbacks refer to each other, and only the garbage collector would free
    this cycle.

    Its type is covariant: code that passes on a `Pending` of any message does not complete it.
    """

    __slots__ = ("_on_complete", "blocks", "done", "on_abandon", "response", "seconds")

    def __init__(self, blocks: bool = False) -> None:
        self.blocks = blocks
        self.done = False
        self.seconds = 0.0
        self.response: R_co = _UNANSWERED
        self.on_abandon: Callable[[], None] | None = None
        self._on_complete: Callable[[Completion[R_co]], None] | None = None

    def complete(self, response: Completion[R_co]) -> None:
        """Set the response. Later calls are ignored, since a timeout may race with the response."""
        if self.done:
            return
        self.done = True
        # The sender handles the other kinds of completion; a handler passes them on.
        self.response = response  # type: ignore[assignment]
        callback, self._on_complete, self.on_abandon = self._on_complete, None, None
        if callback is not None:
            callback(response)

    def complete_with(self, outcome: OutcomeOrWork[R_co] | ProtocolViolation) -> None:
        """Adopt a handler's outcome: a response, or that of another `Pending`. If this one was
        abandoned meanwhile, the other is abandoned too.
        """
        if not isinstance(outcome, Pending):
            self.complete(outcome)
        elif self.done:
            outcome.abandon()
        else:
            self.on_abandon = outcome.abandon
            outcome.when_complete(self.complete)

    def when_complete(self, callback: Callable[[Completion[R_co]], None]) -> None:
        """Call `callback(response)` when it is completed, or at once if it already is."""
        if self.done:
            callback(self.response)
        else:
            self._on_complete = callback

    def abandon(self) -> None:
        """Drop the response, because the connection is closed."""
        if not self.done:
            self.done = True
            callback, self._on_complete, self.on_abandon = self.on_abandon, None, None
            if callback is not None:
                callback()


class NoResponse(Enum):
    """The type of `NO_RESPONSE`. It is an enum so that type checkers understand `is`."""

    NO_RESPONSE = "no response"


class CloseConnection(Enum):
    """The type of `CLOSE_CONNECTION`."""

    CLOSE_CONNECTION = "close connection"


NO_RESPONSE: Final = NoResponse.NO_RESPONSE
CLOSE_CONNECTION: Final = CloseConnection.CLOSE_CONNECTION

Outcome = Union[R, Pending[R], NoResponse, CloseConnection]  # noqa: UP007
"""The outcomes of a handler whose responses are `R`."""

OutcomeOrWork = Union[Outcome[R], Work[Outcome[R]]]  # noqa: UP007
"""An outcome, or the work that returns one."""

Completion = Union[  # noqa: UP007
    R, NoResponse, CloseConnection, ProtocolViolation, Work[Outcome[R]]
]
"""The completion of a `Pending`. It is a ProtocolViolation if the decoding of a large request
fails."""


@overload
def then(
    outcome: Outcome[M],
    change: Callable[[M], Outcome[N]],
    on_no_response: Callable[[], object] = ...,
) -> Outcome[N]: ...


@overload
def then(
    outcome: OutcomeOrWork[M],
    change: Callable[[M], OutcomeOrWork[N]],
    on_no_response: Callable[[], object] = ...,
) -> OutcomeOrWork[N]: ...


def then(
    outcome: OutcomeOrWork[Any],
    change: Callable[[Any], OutcomeOrWork[N]],
    on_no_response: Callable[[], object] = lambda: None,
) -> OutcomeOrWork[N]:
    """The outcome of a handler with `change` applied to its response, now or later; instead of it,
    `on_no_response` is called for NO_RESPONSE. A `change` of many rows returns work, which runs in
    slices."""
    if outcome is NO_RESPONSE:
        on_no_response()
        return outcome
    if outcome is CLOSE_CONNECTION:
        return outcome
    if not isinstance(outcome, Pending):
        return change(outcome) if not isinstance(outcome, Generator) else _then(outcome, change)
    later: Pending[N] = Pending(outcome.blocks)
    later.on_abandon = outcome.abandon

    def completed(response: Completion[Any]) -> None:
        if isinstance(response, ProtocolViolation):
            later.complete(response)
        else:
            later.complete_with(then(response, change, on_no_response))

    outcome.when_complete(completed)
    return later.response if later.done else later


def _then(work: Work[Outcome[M]], change: Callable[[M], OutcomeOrWork[N]]) -> Work[Outcome[N]]:
    outcome: OutcomeOrWork[N] = then((yield from work), change)
    return (yield from outcome) if isinstance(outcome, Generator) else outcome
