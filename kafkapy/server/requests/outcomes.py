"""The outcomes of a handler.

A handler is a function of a context and a request. It returns the response; or a `Pending` which
it, or whoever it handed it to, completes later; or `NO_RESPONSE` (a produce with acks=0). A handler
whose work grows with the rows of its request is a generator function: see `turns`. So may be the
function that makes the response of a `Pending`. One that waits for ZooKeeper or the controller
returns a coroutine (`Later`), which runs in the background (`handler_table.in_background`).
The place of the answer on the connection is fixed when the handler is called.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, Generic, TypeVar, Union

from kafkapy.common.errors import ProtocolViolation

R = TypeVar("R")

_UNANSWERED: Any = None

Later = Coroutine[Any, Any, R]
"""A response, or the work that makes it, for which somebody has to wait."""

ANONYMOUS: Final = "User:ANONYMOUS"
"""Who did not say who they are (`KafkaPrincipal.ANONYMOUS`)."""


class Pending(Generic[R]):
    """A response that will come later.

    `blocks` keeps the connection from handling further requests meanwhile, as Kafka does for every
    request; only fetches, whose answers are large, and requests handled in slices need it here.
    `seconds` is the time of the event loop that the slices took. Once done it keeps nobody alive:
    the callbacks know the request and it them, which only the garbage collector would undo.
    """

    __slots__ = ("_on_complete", "blocks", "done", "on_abandon", "response", "seconds")

    def __init__(self, blocks: bool = False) -> None:
        self.blocks = blocks
        self.done = False
        self.seconds = 0.0
        self.response: R = _UNANSWERED
        self.on_abandon: Callable[[], None] | None = None
        self._on_complete: Callable[[Any], None] | None = None

    def complete(self, response: Any) -> None:
        """Give the response; later calls are ignored, for a timeout may race with the answer."""
        if self.done:
            return
        self.done = True
        self.response = response
        callback, self._on_complete, self.on_abandon = self._on_complete, None, None
        if callback is not None:
            callback(response)

    def follow(self, outcome: Any) -> None:
        """Adopt a handler's outcome: a response, or that of another `Pending`."""
        if isinstance(outcome, Pending):
            self.on_abandon = outcome.abandon
            outcome.when_complete(self.complete)
        else:
            self.complete(outcome)

    def when_complete(self, callback: Callable[[Any], None]) -> None:
        """Run `callback(response)` when there is one: at once if there already is."""
        if self.done:
            callback(self.response)
        else:
            self._on_complete = callback

    def abandon(self) -> None:
        """The connection is gone: nobody waits for the response."""
        if not self.done:
            self.done = True
            callback, self._on_complete, self.on_abandon = self.on_abandon, None, None
            if callback is not None:
                callback()


class NoResponse:
    """The type of `NO_RESPONSE`."""


class CloseConnection:
    """The type of `CLOSE_CONNECTION`."""


NO_RESPONSE: Final = NoResponse()
CLOSE_CONNECTION: Final = CloseConnection()

Outcome = Union[R, Pending[R], NoResponse, CloseConnection]  # noqa: UP007
"""The outcomes of a handler whose responses are `R`."""


def then(outcome: Any, change: Callable[[Any], Any]) -> Any:
    """The outcome of a handler with `change` made of its response, now or when it comes."""
    if outcome is NO_RESPONSE or outcome is CLOSE_CONNECTION:
        return outcome
    if isinstance(outcome, ProtocolViolation):  # of a large request, found when it was decoded
        return outcome
    if not isinstance(outcome, Pending):
        return change(outcome) if not isinstance(outcome, Generator) else _then(outcome, change)
    later: Pending[Any] = Pending(outcome.blocks)
    later.on_abandon = outcome.abandon
    outcome.when_complete(lambda response: later.complete(then(response, change)))
    return later.response if later.done else later


def _then(
    work: Generator[int, None, Any], change: Callable[[Any], Any]
) -> Generator[int, None, Any]:
    return then((yield from work), change)
