"""What several handlers need: a coroutine or the controller behind a `Pending`; the resource types
of configs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from kafkapy.common.errors import ApiError, ErrorCode, KafkapyError
from kafkapy.controller.events import Event
from kafkapy.server.request import Pending, RequestContext

logger = logging.getLogger("kafka.server.KafkaApis")

R = TypeVar("R")

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
_START_WAIT_MS: Final = 20_000


def unsupported_resource(resource_type: int) -> ApiError:
    """What configs of another resource type are answered with."""
    return ApiError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource_type}")


def run_async(
    context: RequestContext,
    work: Coroutine[Any, Any, Any],
    refuse: Callable[[ApiError], Any],
) -> Pending:
    """Run `work` as a task of the broker; its result, or the refusal, answers the request."""
    pending = Pending()

    async def answer() -> None:
        response, refusal = None, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            response = await work
        except ApiError as error:
            refusal = error
        except KafkapyError as error:
            logger.error("Error processing a request of %s: %s", context.client_host, error)
        finally:
            # A fault is `spawn`'s to log; whoever waits on the connection must not hang on it.
            pending.complete(refuse(refusal) if response is None else response)

    context.broker.spawn(answer())
    return pending


def not_controller() -> ApiError:
    """What is answered to who should have asked the controller, and will look for it."""
    return ApiError(
        ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster."
    )


def require_controller(context: RequestContext) -> None:
    """Only the active controller serves this.

    Raises:
        ApiError: NOT_CONTROLLER.
    """
    controller = context.broker.controller.controller
    if controller is None or not controller.is_active:
        raise not_controller()


async def controller_answer(
    context: RequestContext, event_with: Callable[[Callable[[Any], None]], Event]
) -> Any:
    """What this broker's controller replies to the event made of a reply function."""
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def reply(result: Any) -> None:
        # The broker may have stopped waiting, because it stops.
        if not answer.done():
            answer.set_result(result)

    context.broker.controller.submit(event_with(reply))
    return await answer


def ask_controller(
    context: RequestContext,
    event_with: Callable[[Callable[[R], None]], Event],
    to_response: Callable[[R], Any],
) -> Any:
    """Queue the event made of a reply function for this broker's controller; its reply, or its
    refusal if it is not the active one, answers the request."""
    pending = Pending()
    event = event_with(lambda result: pending.complete(to_response(result)))
    context.broker.controller.submit(event)
    return pending.response if pending.done else pending


def transactional_error(error: ErrorCode, version: int, first_version_with_fenced: int) -> int:
    """A transactional API's error; its older versions know no PRODUCER_FENCED (KIP-588)."""
    if error is ErrorCode.PRODUCER_FENCED and version < first_version_with_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


async def metadata_known(context: RequestContext) -> None:
    """Wait, within limits, until this broker has heard what there is in its cluster."""
    broker = context.broker
    await broker.when_metadata(lambda _: broker.knows_metadata, _START_WAIT_MS)
