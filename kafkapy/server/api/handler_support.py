"""Shared helpers of handlers: responses from coroutines and from the controller, checks of
requests, quotas, and conversions of ACLs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kafkapy.common.errors import ApiError, ErrorCode, KafkapyError
from kafkapy.controller.events import Event
from kafkapy.protocol.schema import has_more_elements
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.server.admin.acl_admin import AclAdmin, Binding
from kafkapy.server.api.authorization import Action, Authorization, log_denied
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.throttler import client_of
from kafkapy.server.quotas.client_quotas import ClientQuotas, Mutations
from kafkapy.server.requests.outcomes import CloseConnection, Outcome, Pending, ResponseCoroutine
from kafkapy.server.requests.turns import CHECK_UNITS, ROW_UNITS, Pace, Work, as_work, run_in_thread

if TYPE_CHECKING:
    from kafkapy.protocol.messages.create_acls import AclCreation
    from kafkapy.protocol.messages.delete_acls import DeleteAclsFilter
    from kafkapy.protocol.messages.describe_acls import DescribeAclsRequest
    from kafkapy.protocol.schema import Message
    from kafkapy.server.cluster.controller_task import ControllerTask
    from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
    from kafkapy.server.requests.background_tasks import BackgroundTasks

logger = logging.getLogger("kafka.server.KafkaApis")

R = TypeVar("R")
S = TypeVar("S")
M = TypeVar("M", bound="Message")
Q = TypeVar("Q", bound="Message")

ELEMENTS_AT_ONCE: Final = 2_000
"""The limit of elements in a message that is created, or encoded, in one slice."""
CHANGES_PER_REQUEST_MAX: Final = 10_000
_START_WAIT_MS: Final = 20_000


class TopicRow(Protocol):
    """A topic's row of a response."""

    error_code: int
    error_message: str | None


TR = TypeVar("TR", bound=TopicRow)


async def await_topics(
    rows: Iterable[TR],
    is_done: Callable[[TR, int], Awaitable[bool]],
    left_ms: Callable[[], int],
    pace: Pace,
) -> None:
    """Wait for the topics of rows, which share one timeout. `is_done(row, timeout_ms)` waits for
    one topic. A row for which it returns False gets REQUEST_TIMED_OUT.
    """
    for row in rows:
        await pace.charge(ROW_UNITS)
        if not await is_done(row, left_ms()):
            row.error_code = ErrorCode.REQUEST_TIMED_OUT
            row.error_message = "The request timed out."


def refusal(
    refuse: Callable[[Q, ApiError, int], R], request: Q, error: ApiError, version: int
) -> R | Work[R]:
    """The response that refuses a whole request. For a request with many rows, another thread
    creates it.
    """
    make = partial(refuse, request, error, version)
    is_large = has_more_elements(request, ELEMENTS_AT_ONCE, numbers=True)
    return run_in_thread(make) if is_large else make()


def limit_changes(count: int) -> None:
    """Refuse a request for more than 10,000 changes, because all of them stay in memory.

    The limit, error code and message are those of Kafka 4's controller (`MAX_RECORDS_PER_USER_OP`).
    Kafka 3.9 with ZooKeeper has no limit.
    """
    if count > CHANGES_PER_REQUEST_MAX:
        message = "Unable to perform excessively large batch operation."
        raise ApiError(ErrorCode.POLICY_VIOLATION, message)


def run_async(
    tasks: BackgroundTasks,
    context: RequestContext,
    work: ResponseCoroutine[M | Work[M]],
    refuse: Callable[[ApiError], M | CloseConnection | Work[M | CloseConnection]],
    pending: Pending[M] | None = None,
    is_cancellable: bool = False,
) -> Pending[M]:
    """Run `work` as a task of the broker. Its result or error is the response. Work that may end
    early checks `pending.done`, which is set when the client disconnects. If `is_cancellable`, the
    task is cancelled then.
    """
    pending = Pending() if pending is None else pending

    async def respond() -> None:
        if is_cancellable:
            if pending.done:
                work.close()
                return
            pending.on_abandon = partial(_cancel, asyncio.current_task())
        try:
            pending.complete(await work)
        except ApiError as error:
            pending.complete(refuse(error))
        except KafkapyError as error:
            logger.error("Error processing a request of %s: %s", context.client_host, error)
        finally:
            # `spawn` logs unexpected exceptions. The client needs a response even then.
            if not pending.done:
                pending.complete(refuse(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)))

    tasks.spawn(respond())
    return pending


def _cancel(task: asyncio.Task[None] | None) -> None:
    assert task is not None
    task.cancel()


def gather(
    starts: Sequence[Callable[[Callable[[R], None]], None]],
    to_response: Callable[[list[R]], M | Work[M]],
    units: int = ROW_UNITS,
) -> Work[Outcome[M]]:
    """Start operations, at a cost of `units` each. Each of `starts` is called with the callback for
    its result. `to_response` is called with all results, in the order of `starts`.
    """
    pending: Pending[M] = Pending()
    results: dict[int, R] = {}

    def on_result(number: int, result: R) -> None:
        results[number] = result
        if len(results) == len(starts):
            pending.complete(to_response([results[n] for n in range(len(starts))]))

    for number, start in enumerate(starts):
        start(partial(on_result, number))
        yield units
    if not starts:
        return (yield from as_work(to_response([])))
    return (yield from as_work(pending.response)) if pending.done else pending


def distinct(rows: Iterable[R], key: Callable[[R], Hashable]) -> list[R]:
    """The rows of a request without repeated keys: the last row of each key, in the place of its
    first row. A request may name a resource 50,000 times.
    """
    return list({key(row): row for row in rows}.values())


class _ConfigResource(Protocol):
    resource_type: int
    resource_name: str


def config_resource(row: _ConfigResource) -> Hashable:
    """The resource of a row in AlterConfigs or IncrementalAlterConfigs."""
    return row.resource_type, row.resource_name


def refuse_repeated(resource: Hashable, resources: Counter[Hashable]) -> None:
    """Refuse a resource that a request names more than once. Only its last row would be applied.

    Raises:
        ApiError: INVALID_REQUEST, with the message of `kafka.server.ConfigAdminManager`.
    """
    if resources[resource] > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


def not_controller() -> ApiError:
    """The error NOT_CONTROLLER, after which the client refreshes its metadata and retries."""
    return ApiError(
        ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster."
    )


def require_controller(task: ControllerTask) -> None:
    """Require that this broker is the active controller.

    Raises:
        ApiError: NOT_CONTROLLER.
    """
    controller = task.controller
    if controller is None or not controller.is_active:
        raise not_controller()


async def controller_reply(
    controller: ControllerTask, create_event: Callable[[Callable[[R], None]], Event]
) -> R:
    """Queue an event for this broker's controller, and wait for its reply. The event is created
    from a reply function.
    """
    future: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def reply(result: R) -> None:
        # The future may be cancelled, because the broker stops.
        if not future.done():
            future.set_result(result)

    controller.submit(create_event(reply))
    return await future


def submit_to_controller(
    controller: ControllerTask,
    create_event: Callable[[Callable[[R], None]], Event],
    to_response: Callable[[R], S],
) -> S | Pending[S]:
    """Queue an event for this broker's controller, created from a reply function. The response is
    created from the controller's reply, which is an error if the controller is not active.
    """
    pending: Pending[S] = Pending()
    event = create_event(lambda result: pending.complete(to_response(result)))
    controller.submit(event)
    return pending.response if pending.done else pending


def transactional_error(
    error: ErrorCode, version: int, first_version_with_producer_fenced: int
) -> int:
    """The error code of a transactional API. Older versions have INVALID_PRODUCER_EPOCH instead of
    PRODUCER_FENCED (KIP-588).
    """
    if error is ErrorCode.PRODUCER_FENCED and version < first_version_with_producer_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


async def await_metadata(waiter: MetadataWaiter) -> None:
    """Wait, with a limit, until this broker has the cluster's metadata."""
    await waiter.wait_until(lambda _: waiter.is_complete, _START_WAIT_MS)


def mutations(
    quotas: ClientQuotas, context: RequestContext, strict_since: int | None = None
) -> Mutations:
    """The changes to topics that the caller's quota allows (KIP-599). Only versions from
    `strict_since` on are refused beyond the quota.
    """
    strict = strict_since is not None and context.version >= strict_since
    return quotas.mutations(client_of(context), strict)


def may_describe_topics(
    authorization: Authorization, context: RequestContext, names: Iterable[str]
) -> Work[bool]:
    """Whether the caller may describe all topics that its subscription names."""
    for name in names:
        yield CHECK_UNITS
        action = Action(Operation.DESCRIBE, ResourceKind.TOPIC, name)
        if not authorization.is_allowed(context, *action):
            log_denied(context, action)
            return False
    return True


def acl_admin(admin: AclAdmin | None, message: str = "No Authorizer is configured.") -> AclAdmin:
    """Return `admin`, if the broker has an authorizer.

    Raises:
        ApiError: SECURITY_DISABLED, there is no authorizer.
    """
    if admin is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, message)
    return admin


def acl_binding(row: AclCreation) -> Binding:
    """The entry of a CreateAcls row.

    Raises:
        ApiError: INVALID_REQUEST, a code is unknown.
    """
    return _binding(
        (row.resource_type, row.resource_name, row.resource_pattern_type),
        (row.principal, row.host),
        row,
    )


def acl_filter(row: DescribeAclsRequest | DeleteAclsFilter) -> Binding:
    """The filter of a DescribeAcls or DeleteAcls row.

    Raises:
        ApiError: INVALID_REQUEST, a code is unknown.
    """
    return _binding(
        (row.resource_type_filter, row.resource_name_filter, row.pattern_type_filter),
        (row.principal_filter, row.host_filter),
        row,
    )


def _binding(
    resource: tuple[int, str | None, int],
    principal_and_host: tuple[str | None, str | None],
    row: AclCreation | DescribeAclsRequest | DeleteAclsFilter,
) -> Binding:
    kind, name, pattern = resource
    try:
        return Binding(
            ResourcePattern(ResourceKind(kind), name, PatternType(pattern)),
            AccessControlEntry(
                *principal_and_host, Operation(row.operation), Permission(row.permission_type)
            ),
        )
    except ValueError as error:
        message = f"The request contains UNKNOWN elements: {error}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message) from None
