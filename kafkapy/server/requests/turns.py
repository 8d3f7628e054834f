"""Runs the work of large requests in slices, one slice a turn of the event loop.

One event loop serves all connections. A request that handled 50,000 rows at once would block all
other clients for half a second. So work that grows with a request is a generator. It yields the
cost of the previous step, in units of about a microsecond of processor time, and is suspended when
a slice is used up. Between two slices the loop serves the other connections.

Large requests take their turns first in, first out, so that only one of them at a time holds memory
for its rows, however many clients send them. Units are counted, not measured: the same requests are
split at the same places on every machine.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from kafkapy.common.errors import ProtocolViolation
from kafkapy.server.requests.outcomes import (
    CLOSE_CONNECTION,
    Outcome,
    OutcomeOrWork,
    Pending,
    ThreadCall,
)
from kafkapy.server.requests.outcomes import Work as Work  # handlers import it from here

if TYPE_CHECKING:
    from kafkapy.protocol.schema import Message

R = TypeVar("R")
M = TypeVar("M", bound="Message")

logger = logging.getLogger("kafka.server.KafkaApis")

SLICE_UNITS: Final = 5_000
STEP_UNITS_MAX: Final = 30_000
"""A warning is logged if a slice costs more, because a step of its work is too large."""
ROW_UNITS: Final = 10
"""The cost of one row of a request: look it up, check it and create its response."""
ROWS_AT_ONCE: Final = 256

SWITCH_S: Final = 0.0005
"""The time for which the other thread may keep the interpreter lock while the event loop waits for
it. The loop requests it at every event, so with CPython's 5 ms twenty connections waited for a
quarter of a second."""

CHECK_UNITS: Final = 3
"""The cost of one row that an authorizer checks."""
CHANGE_UNITS: Final = 200
"""The cost of one row that may write to ZooKeeper."""


def hash_units(name: str) -> int:
    """The cost of finding the coordinator of a group or transactional id: it is hashed in Python,
    and may have 32,767 bytes."""
    return len(name) // 8


class SliceScheduler:
    """The turns of one event loop. `units_max` is the highest cost of a slice so far, for tests and
    metrics."""

    def __init__(self) -> None:
        self._waiting: deque[_Job | asyncio.Future[None]] = deque()
        self._thread_calls: dict[_Job, ThreadCall] = {}  # in the order of their arrival
        self._is_thread_busy = False  # the other thread
        self._executor: ThreadPoolExecutor | None = None
        self._is_scheduled = False
        self._is_closed = False
        self.units_max = 0

    def run(self, work: Work[Outcome[R]]) -> Outcome[R]:
        """The result of `work` if it needs one slice only; otherwise a `Pending` of it."""
        units = 0
        try:
            while units < SLICE_UNITS:
                cost = next(work)
                if isinstance(cost, ThreadCall):
                    job = _Job(work)
                    self._queue_thread_call(job, cost)
                    return job.pending
                units += cost
        except StopIteration as end:
            result: Outcome[R] = end.value
            return result
        return self.queue(work)

    def queue(
        self, work: Work[Outcome[R] | ProtocolViolation], may_drop: bool = False
    ) -> Pending[R]:
        """Queue `work` for its first turn. Its connection waits, since its requests are in order.
        With `may_drop`, work is not begun if its connection is closed before: a client that sends
        large requests and disconnects leaves no work behind."""
        job = _Job(work)
        if may_drop:
            job.pending.on_abandon = job.drop
        self._add(job)
        return job.pending

    def pace(self) -> Pace:
        """A counter of units for a coroutine."""
        return Pace(self)

    async def next_turn(self) -> None:
        """Wait for the next free turn."""
        turn = asyncio.get_running_loop().create_future()
        self._add(turn)
        await turn

    def _add(self, job: _Job | asyncio.Future[None]) -> None:
        self._waiting.append(job)
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        waiting = self._waiting
        if not waiting:
            return  # closed meanwhile
        job = waiting.popleft()
        try:
            if isinstance(job, _Job):
                call = job.run_slice()
                if job.units > self.units_max:
                    self._record_units(job.units)
                if call is not None:
                    self._queue_thread_call(job, call)
                elif not job.is_finished:
                    waiting.appendleft(job)
            elif not job.done():
                job.set_result(None)
        finally:
            self._is_scheduled = bool(waiting)
            if waiting:
                asyncio.get_running_loop().call_soon(self._take_turn)

    def _record_units(self, units: int) -> None:
        self.units_max = units
        if units > STEP_UNITS_MAX:
            logger.warning("A step of a large request cost %d units", units)

    def _queue_thread_call(self, job: _Job, call: ThreadCall) -> None:
        self._thread_calls[job] = call
        if call.may_drop:
            job.pending.on_abandon = lambda: self._drop(job)
        self._start_thread_call()

    def _drop(self, job: _Job) -> None:
        self._thread_calls.pop(job, None)

    def _start_thread_call(self) -> None:
        """Start waiting work in the other thread. There is one: decompression takes memory."""
        if self._is_thread_busy or not self._thread_calls or self._is_closed:
            return
        job = next(iter(self._thread_calls))
        call = self._thread_calls.pop(job)
        job.pending.on_abandon = None
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "large-requests")
            sys.setswitchinterval(SWITCH_S)

        def done(future: asyncio.Future[Any]) -> None:
            self._is_thread_busy = False
            if not future.cancelled() and not self._is_closed:
                job.thread_result = future
                self._add(job)
            self._start_thread_call()

        future = asyncio.get_running_loop().run_in_executor(self._executor, call.function)
        self._is_thread_busy = True
        future.add_done_callback(done)

    def close(self) -> None:
        """Drop all waiting work. Does not wait for the other thread."""
        self._waiting.clear()
        self._thread_calls.clear()
        self._is_closed = True
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)


class _Job:
    """One request's work and the `Pending` of its result."""

    __slots__ = ("_has_started", "_work", "is_finished", "pending", "thread_result", "units")

    def __init__(self, work: Work[Any]) -> None:
        self._work = work
        self.pending: Pending[Any] = Pending(blocks=True)
        self.is_finished = False
        self._has_started = False
        self.thread_result: asyncio.Future[Any] | None = None
        self.units = 0  # of the last slice

    def drop(self) -> None:
        """Close the work if it has not begun."""
        if not self._has_started:
            self._work.close()

    def run_slice(self) -> ThreadCall | None:
        """Continue the work for one slice, or until it yields a `ThreadCall`, which is returned."""
        self.units = 0
        self._has_started = True
        work = self._work
        done, self.thread_result = self.thread_result, None
        started = time.perf_counter()
        try:
            cost = next(work) if done is None else work.send(done)
            while not isinstance(cost, ThreadCall):
                self.units += cost
                if self.units >= SLICE_UNITS:
                    return None
                cost = next(work)
        except StopIteration as end:
            self.is_finished = True
            self.pending.seconds += time.perf_counter() - started
            self.pending.complete_with(end.value)
            return None
        except BaseException:
            self.is_finished = True
            self.pending.complete(CLOSE_CONNECTION)
            raise
        finally:
            if not self.is_finished:
                self.pending.seconds += time.perf_counter() - started
        return cost


def chunks(rows: Sequence[R]) -> Iterator[Sequence[R]]:
    """The rows in pieces of at most `ROWS_AT_ONCE`, for code that handles a list at once."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]


class Pace:
    """A coroutine's count of units since its last turn."""

    __slots__ = ("_slices", "_units")

    def __init__(self, slices: SliceScheduler) -> None:
        self._slices = slices
        self._units = 0

    async def charge(self, units: int) -> None:
        """Count the units of the last step. Waits for the next turn when a slice is used up."""
        self._units += units
        if self._units >= SLICE_UNITS:
            self._units = 0
            await self._slices.next_turn()


def run_in_thread(function: Callable[[], R], may_drop: bool = False) -> Work[R]:
    """The result of `function`, which another thread calls. It must not use objects that the event
    loop uses. `may_drop` as for `SliceScheduler.queue`."""
    done: asyncio.Future[R] = yield ThreadCall(function, may_drop)
    try:
        return done.result()
    finally:
        # An exception's traceback has this frame. With the future in it, that is a cycle: a batch
        # of 50 MB in the other thread's frames would wait for the garbage collector.
        del done


async def run_paced(work: Work[R], pace: Pace) -> R:
    """The result of `work`, for a coroutine. The work must not yield a `ThreadCall`."""
    try:
        while True:
            cost = next(work)
            assert isinstance(cost, int)
            await pace.charge(cost)
    except StopIteration as end:
        result: R = end.value
        return result


def as_work(outcome: OutcomeOrWork[R]) -> Work[Outcome[R]]:
    """The outcome of a handler, whether it is a generator function or not."""
    return (yield from outcome) if isinstance(outcome, Generator) else outcome


@overload
def run_now(outcome: M | Work[M]) -> M: ...


@overload
def run_now(outcome: Work[R]) -> R: ...


def run_now(outcome: object) -> object:
    """The outcome of a handler, with all its work done at once. For callers that are not
    clients."""
    if not isinstance(outcome, Generator):
        return outcome
    try:
        cost = next(outcome)
        while True:
            if isinstance(cost, ThreadCall):
                done: Future[Any] = Future()
                done.set_result(cost.function())
                cost = outcome.send(done)
            else:
                cost = next(outcome)
    except StopIteration as end:
        return end.value
