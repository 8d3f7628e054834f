"""A handler's coroutine always ends in an answer: its result, its refusal, or the fault's code."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkapy.server.api.handler_support import (
    controller_reply,
    gather,
    refusal,
    require_controller,
    run_async,
    submit_to_controller,
)
from kafkapy.server.requests.background_tasks import BackgroundTasks
from kafkapy.server.requests.outcomes import Pending
from kafkapy.server.requests.turns import run_now
from kafkapy.zk.zookeeper import SessionExpired


def answer(outcome: Any) -> Any:
    """The response to a client when a handler's coroutine returns or raises `outcome`."""

    async def work() -> Any:
        await asyncio.sleep(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def scenario() -> Any:
        answered = asyncio.get_running_loop().create_future()
        context: Any = SimpleNamespace(client_host="10.0.0.1")
        pending = run_async(
            BackgroundTasks(), context, work(), lambda error: ("refused", error.code, error.message)
        )
        assert not pending.done
        pending.when_complete(answered.set_result)
        return await answered

    return asyncio.run(scenario())


def test_a_result_is_the_answer() -> None:
    assert answer("result") == "result"


def test_a_refusal_is_answered_as_the_api_says_it() -> None:
    refusal = ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.")
    assert answer(refusal) == ("refused", refusal.code, refusal.message)


def test_an_expired_session_is_told_to_the_client_and_logged_in_a_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer(SessionExpired("/brokers/topics/t")) == ("refused", code, code.name)
    [record] = caplog.records
    assert "SessionExpired for /brokers/topics/t" in record.getMessage()
    assert record.exc_info is None, "no traceback for what is expected"


def test_a_fault_is_answered_too_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Else the client, and whatever it sends behind this request, would wait for ever."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer(ZeroDivisionError()) == ("refused", code, code.name)
    assert [r.getMessage() for r in caplog.records] == ["A background task failed"]


@pytest.mark.parametrize("is_cancellable", [False, True])
@pytest.mark.parametrize("has_begun", [False, True])
def test_work_that_may_be_dropped_ends_when_its_client_leaves(
    is_cancellable: bool, has_begun: bool
) -> None:
    done: list[str] = []

    async def work() -> Any:
        for step in range(4):
            done.append(f"step {step}")
            await asyncio.sleep(0)

    async def scenario() -> None:
        context: Any = SimpleNamespace(client_host="10.0.0.1")
        tasks = BackgroundTasks()
        pending = run_async(
            tasks, context, work(), lambda error: None, is_cancellable=is_cancellable
        )
        if has_begun:
            await asyncio.sleep(0)
        pending.abandon()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not tasks._tasks

    asyncio.run(scenario())
    assert len(done) == (int(has_begun) if is_cancellable else 4)


@pytest.mark.parametrize("count", [2000, 2001])
@pytest.mark.parametrize("of_numbers", [False, True])
def test_a_refusal_of_many_rows_is_made_by_another_thread(count: int, of_numbers: bool) -> None:
    """Made by the event loop, the refusal of a megabyte of rows kept all others waiting."""
    request = OffsetFetchRequest(group_id="g", groups=[])
    if of_numbers:
        request.topics = [
            OffsetFetchRequestTopic(name="t", partition_indexes=list(range(count - 1)))
        ]
    else:
        request.topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[])] * count
    error = ApiError(ErrorCode.NOT_COORDINATOR)
    made: Any = refusal(lambda *given: given, request, error, 5)
    if count > 2000:
        made = next(made).function()
    assert made == (request, error, 5)


@pytest.mark.parametrize("at_once", [True, False])
def test_what_the_controller_replies_is_the_answer(at_once: bool) -> None:
    queue: list[Any] = []
    submit = (lambda event: event("reply")) if at_once else queue.append
    controller: Any = SimpleNamespace(submit=submit)
    event_with: Any = lambda reply: reply  # noqa: E731
    answer = submit_to_controller(controller, event_with, lambda result: ("answer", result))
    if not at_once:
        assert not answer.done
        [event] = queue
        event("reply")
        answer = answer.response
    assert answer == ("answer", "reply")


@pytest.mark.parametrize("controller", [None, SimpleNamespace(is_active=False)])
def test_who_is_not_the_active_controller_refuses(controller: Any) -> None:
    task: Any = SimpleNamespace(controller=controller)
    with pytest.raises(ApiError, match="not the correct controller") as refused:
        require_controller(task)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    task.controller = SimpleNamespace(is_active=True)
    require_controller(task)


def test_a_reply_that_nobody_waits_for_any_more_is_dropped() -> None:
    """The broker stops: its tasks are cancelled before its controller is."""

    async def scenario() -> None:
        queue: list[Any] = []
        controller: Any = SimpleNamespace(submit=queue.append)
        event_with: Any = lambda reply: reply  # noqa: E731
        waiting = asyncio.ensure_future(controller_reply(controller, event_with))
        await asyncio.sleep(0)
        queue[0]("reply")
        assert await waiting == "reply"
        abandoned = asyncio.ensure_future(controller_reply(controller, event_with))
        await asyncio.sleep(0)
        abandoned.cancel()
        await asyncio.gather(abandoned, return_exceptions=True)
        queue[1]("reply")

    asyncio.run(scenario())


def test_an_answer_of_many_waits_for_all_and_keeps_their_order() -> None:
    waiting: list[Any] = []

    def later(answered: Any) -> None:
        waiting.append(answered)

    outcome = run_now(gather([later, lambda answered: answered("b"), later], list))
    assert isinstance(outcome, Pending)
    waiting[1]("c")
    assert not outcome.done
    waiting[0]("a")
    assert outcome.response == ["a", "b", "c"]
    assert run_now(gather([lambda answered: answered(1)], list)) == [1]
    assert run_now(gather([], list)) == []
