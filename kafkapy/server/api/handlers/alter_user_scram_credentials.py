"""AlterUserScramCredentials (key 51), version 0: sets and removes SCRAM credentials (KIP-554).

Behaviour: only the active controller serves it. If one change of a user is refused, none is made.
The request has salted passwords, from which the stored keys are computed.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kafkapy.server.admin.scram_admin import Deletion, ScramAdmin, Upsertion
from kafkapy.server.api.handler_support import limit_changes, require_controller
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.changes.config_changes import ConfigChangeListener
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.requests.outcomes import ResponseCoroutine
from kafkapy.server.requests.turns import SliceScheduler, Work


def handle(
    admin: ScramAdmin,
    changes: ConfigChangeListener,
    controller: ControllerTask,
    slices: SliceScheduler,
    context: RequestContext,
    request: AlterUserScramCredentialsRequest,
) -> ResponseCoroutine[Work[AlterUserScramCredentialsResponse]]:
    """Change the credentials, user by user."""
    require_controller(controller)
    limit_changes(len(request.deletions) + len(request.upsertions))
    wanted: list[Deletion | Upsertion] = [
        Deletion(row.name, row.mechanism) for row in request.deletions
    ]
    wanted += [
        Upsertion(row.name, row.mechanism, row.iterations, row.salt, row.salted_password)
        for row in request.upsertions
    ]

    async def alter() -> Work[AlterUserScramCredentialsResponse]:
        results = await admin.alter(wanted, slices.pace())
        # After the response a login with the password must work, at least at this broker.
        await changes.process()
        return _response(results)

    return alter()


def _response(results: Mapping[str, ApiError | None]) -> Work[AlterUserScramCredentialsResponse]:
    response = AlterUserScramCredentialsResponse()
    for user, error in results.items():
        result = AlterUserScramCredentialsResult(user=user)
        if error is not None:
            result.error_code, result.error_message = error.code, error.message
        response.results.append(result)
        yield 1
    return response


def refuse(
    request: AlterUserScramCredentialsRequest, error: ApiError, version: int
) -> AlterUserScramCredentialsResponse:
    """The same error for every user."""
    users = dict.fromkeys(row.name for row in request.deletions)
    users |= dict.fromkeys(row.name for row in request.upsertions)
    rows = [
        AlterUserScramCredentialsResult(
            user=user, error_code=error.code, error_message=error.message
        )
        for user in users
    ]
    return AlterUserScramCredentialsResponse(results=rows)
