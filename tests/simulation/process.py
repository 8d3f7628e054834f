"""A simulated process: an asyncio loop without a selector, whose time is the simulation's.

Production code runs on it unchanged: tasks, timers, connections and the threads of `to_thread` are
events of the one queue. A process can be paused, so that its due events wait, or killed. A killed
process never runs again. Its objects are kept, so that no destructor runs at a random moment.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkapy.storage.flush_task import FlushTask

if TYPE_CHECKING:
    from tests.simulation.events import Events
    from tests.simulation.network import Network, SimTransport

THREAD_US: Final = 20_000
"""The default limit of the time of a thread's work."""


def _is_flush(func: Callable[..., Any]) -> bool:
    """Whether `asyncio.to_thread` runs a FlushTask."""
    return isinstance(func, partial) and isinstance(
        getattr(func.args[0], "__self__", None), FlushTask
    )


class Killed(BaseException):
    """Raised when the process has ended in the middle of a step."""


class SimProcess(asyncio.AbstractEventLoop):
    """One process on a host. `on_fault(error, message)` is called with uncaught exceptions."""

    def __init__(
        self,
        events: Events,
        network: Network,
        host: str,
        on_fault: Callable[[BaseException | None, str], None],
    ) -> None:
        self.events = events
        self.network = network
        self.host = host
        self.is_dead = False
        self.is_paused = False
        self.thread_us = THREAD_US
        """The limit of the time of a thread's work."""
        self.flush_us = 0
        """The limit of the time of a flush, if it is longer."""
        self.on_sent: Callable[[int], None] | None = None
        self.on_received: Callable[[int], None] | None = None
        """Called with the API key of each request, after it was sent or passed to its protocol."""
        self.transports: dict[SimTransport, None] = {}
        self._on_fault = on_fault
        self._held: deque[asyncio.Handle] = deque()
        self._tasks: list[asyncio.Task[Any]] = []

    # interface of the simulation

    def run(self, handle: asyncio.Handle) -> None:
        """Run a due event, unless this process is dead or paused."""
        if self.is_paused:
            self._held.append(handle)
        elif not self.is_dead and not handle._cancelled:
            self.events.active_hosts[self.host] = None
            asyncio._set_running_loop(self)
            handle._run()
            asyncio._set_running_loop(None)

    def pause(self) -> None:
        """Stop the process, as SIGSTOP does."""
        self.is_paused = True

    def resume(self) -> None:
        """Continue the process, as SIGCONT does. Events that became due meanwhile run in order."""
        self.is_paused = False
        while self._held:
            self.events.soon(self._held.popleft())

    def kill(self) -> None:
        """End the process. Its connections end in `Network.process_ended`."""
        self.is_dead = True
        self.is_paused = False
        self._held.clear()
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    # interface of asyncio

    def time(self) -> float:
        return self.events.now_us / 1e6

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self.is_dead

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self.events.soon(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self.events.at(round(when * 1e6), lambda: self.run(timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer stays queued and has no effect."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Any = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name)
        self._tasks.append(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, Killed):
            self._on_fault(error, str(context.get("message")))

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run `func` at one moment, as a thread would, and deliver its result at a later one."""
        future = self.create_future()
        most_us = max(self.thread_us, self.flush_us) if _is_flush(func) else self.thread_us
        delivered_us = self.network.random.randrange(1, most_us)
        done_us = self.network.random.randint(0, delivered_us)

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:
                deliver = partial(_end, future.set_exception, error)
            else:
                deliver = partial(_end, future.set_result, result)
            self.call_later((delivered_us - done_us) / 1e6, deliver)

        def _end(end: Callable[[Any], None], outcome: object) -> None:
            if not future.done():
                end(outcome)

        self.call_later(done_us / 1e6, work)
        return future

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int, **_: Any
    ) -> tuple[Any, Any]:
        return await self.network.connect(self, protocol_factory, host, port)

    async def sock_accept(self, sock: Any) -> tuple[Any, Any]:  # type: ignore[override]
        return await self.network.accept(self, sock)

    async def connect_accepted_socket(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], sock: Any, **_: Any
    ) -> tuple[Any, Any]:
        sock.transport.create_protocol(protocol_factory)
        return sock.transport, sock.transport.protocol
