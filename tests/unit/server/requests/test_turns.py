"""Work in slices: one slice a turn of the loop, in order, with what others wait for in between."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from kafkapy.server.requests.outcomes import Pending
from kafkapy.server.requests.turns import (
    SLICE_UNITS,
    SWITCH_S,
    SliceScheduler,
    Work,
    as_work,
    run_in_thread,
    run_now,
    run_paced,
)


def steps(count: int, units: int, log: list[str] | None = None, name: str = "") -> Work[str]:
    for _ in range(count):
        if log is not None:
            log.append(name)
        yield units
    return f"{name} done"


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run the test in an event loop of its own."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


async def turned(pending: Any) -> Any:
    """The response of what runs in turns, with one note for each turn of the loop."""
    assert isinstance(pending, Pending)
    while not pending.done:
        await asyncio.sleep(0)
    return pending.response


@on_a_loop
async def test_work_of_one_slice_is_done_at_once() -> None:
    slices = SliceScheduler()
    assert slices.run(steps(3, 1, name="small")) == "small done"
    assert slices.units_max == 0, "no turn was taken"


@on_a_loop
async def test_more_work_leaves_the_loop_to_others_after_each_slice() -> None:
    slices = SliceScheduler()
    log: list[str] = []
    pending = slices.run(steps(10, SLICE_UNITS, log, "work"))
    assert log == ["work"]  # the first slice is run at once
    assert pending.blocks
    done = asyncio.get_running_loop().create_future()
    pending.when_complete(done.set_result)
    while not done.done():
        log.append("others")
        await asyncio.sleep(0)
    assert done.result() == "work done"
    between = "".join(name[0] for name in log)
    assert "ww" not in between


@on_a_loop
async def test_no_slice_costs_more_than_its_units_and_one_step() -> None:
    slices = SliceScheduler()
    pending: Pending[str] = slices.queue(steps(1000, 700))
    turns = 0
    while not pending.done:
        await asyncio.sleep(0)
        turns += 1
    assert turns == 1000 // 8 + 1
    assert slices.units_max < SLICE_UNITS + 700


@on_a_loop
async def test_large_requests_are_done_one_after_the_other() -> None:
    """So that the rows of one of them at a time are in memory."""
    slices = SliceScheduler()
    log: list[str] = []
    pending = [slices.queue(steps(4, SLICE_UNITS, log, name)) for name in "abc"]
    for each in pending:
        await turned(each)
    assert "".join(log) == "aaaabbbbcccc"


@on_a_loop
async def test_coroutines_take_turns_with_requests() -> None:
    slices = SliceScheduler()
    log: list[str] = []

    async def coroutine() -> None:
        pace = slices.pace()
        for _ in range(3):
            log.append("c")
            await pace.charge(SLICE_UNITS)

    task = asyncio.create_task(coroutine())
    await asyncio.sleep(0)
    await turned(slices.queue(steps(3, SLICE_UNITS, log, "r")))
    await task
    assert sorted(log) == ["c", "c", "c", "r", "r", "r"]


@on_a_loop
async def test_the_result_may_be_what_waits() -> None:
    slices = SliceScheduler()
    later = Pending()

    def work() -> Work[Any]:
        yield SLICE_UNITS
        return later

    pending = slices.queue(work())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not pending.done
    later.complete("late")
    assert pending.response == "late"


@on_a_loop
async def test_a_fault_ends_one_request_and_no_other() -> None:
    slices = SliceScheduler()
    faults: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))

    def faulty() -> Work[Any]:
        yield 1
        raise ZeroDivisionError

    slices.queue(faulty())
    assert await turned(slices.queue(steps(2, 1, name="next"))) == "next done"
    assert [type(fault) for fault in faults] == [ZeroDivisionError]


@on_a_loop
async def test_a_coroutine_can_finish_work() -> None:
    slices = SliceScheduler()
    assert await run_paced(steps(4, SLICE_UNITS, name="work"), slices.pace()) == "work done"


@pytest.mark.parametrize("outcome", ["plain", None])
def test_outcomes_that_are_no_work_are_left_alone(outcome: Any) -> None:
    assert run_now(outcome) is outcome
    assert run_now(as_work(outcome)) is outcome
    assert run_now(steps(2, 1, name="w")) == "w done"


@on_a_loop
async def test_what_another_thread_does_keeps_nobody_waiting() -> None:
    slices = SliceScheduler()
    may_end = threading.Event()
    log: list[str] = []

    def work() -> Work[str]:
        log.append("begun")
        done = yield from run_in_thread(lambda: may_end.wait(60))
        log.append(f"done {done}")
        yield 1
        return "result"

    pending = slices.run(work())
    assert log == ["begun"]
    assert await turned(slices.queue(steps(2, SLICE_UNITS, name="other"))) == "other done"
    assert not pending.done
    may_end.set()
    assert await turned(pending) == "result"
    assert log == ["begun", "done True"]
    slices.close()


@on_a_loop
async def test_the_other_thread_yields_the_interpreter_early() -> None:
    """Each event of the loop waits for it: with the default of 5 ms, 20 connections for 0.2 s."""
    intervals_s: list[float] = []
    slices = SliceScheduler()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.setswitchinterval", intervals_s.append)
        assert slices.run(steps(1, 1, name="here")) == "here done"
        assert intervals_s == []
        assert await turned(slices.run(run_in_thread(lambda: "there"))) == "there"
    assert intervals_s == [SWITCH_S]
    assert SWITCH_S < 0.001
    slices.close()


@on_a_loop
async def test_a_fault_of_the_other_thread_is_raised_in_the_work() -> None:
    slices = SliceScheduler()

    def work() -> Work[str]:
        try:
            yield from run_in_thread(lambda: [][0])
        except IndexError:
            return "caught"
        return "nothing"

    assert await turned(slices.run(work())) == "caught"
    slices.close()


@on_a_loop
async def test_what_the_other_thread_held_when_it_failed_is_free_at_once() -> None:
    """A batch that unfolds to 50 MB and is no batch stayed until the garbage collector's next
    look at the old generations."""

    class Unfolded:
        pass

    held: list[weakref.ref[Unfolded]] = []

    def fail() -> None:
        unfolded = Unfolded()
        held.append(weakref.ref(unfolded))
        raise ValueError

    def work() -> Work[str]:
        try:
            yield from run_in_thread(fail)
        except ValueError:
            return "failed"
        return "done"

    slices = SliceScheduler()
    gc.disable()
    try:
        assert await turned(slices.run(work())) == "failed"
        assert held[0]() is None
    finally:
        gc.enable()
        slices.close()


@on_a_loop
async def test_nothing_goes_on_when_the_broker_has_stopped() -> None:
    slices = SliceScheduler()
    log: list[str] = []
    may_end = threading.Event()

    def work() -> Work[None]:
        yield from run_in_thread(lambda: may_end.wait(60))
        log.append("went on")

    slices.run(work())
    slices.queue(steps(2, 1, log, "waited"))
    slices.close()
    may_end.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert log == []


def test_who_needs_a_result_at_once_does_it_all_in_one_go() -> None:
    def work() -> Work[str]:
        yield 1
        return (yield from run_in_thread(lambda: "done here"))

    assert run_now(work()) == "done here"


@on_a_loop
async def test_large_work_that_nobody_waits_for_is_not_begun() -> None:
    slices = SliceScheduler()
    log: list[str] = []
    gone = slices.queue(steps(3, SLICE_UNITS, log, "gone"), may_drop=True)
    kept = slices.queue(steps(3, 1, log, "kept"))
    gone.abandon()
    kept.abandon()
    for _ in range(10):
        await asyncio.sleep(0)
    assert log == ["kept"] * 3


@on_a_loop
async def test_nor_is_what_another_thread_would_do_for_it() -> None:
    slices = SliceScheduler()
    may_end = threading.Event()
    done: list[str] = []

    def work(name: str, may_drop: bool) -> Work[None]:
        yield from run_in_thread(lambda: done.append(name), may_drop)

    def busy() -> Work[None]:
        yield from run_in_thread(lambda: may_end.wait(60))

    first = slices.run(busy())
    slices.run(work("gone", True)).abandon()
    slices.run(work("not acknowledged", False)).abandon()
    last = slices.run(work("last", True))
    may_end.set()
    await turned(first)
    await turned(last)
    assert done == ["not acknowledged", "last"]
    slices.close()
