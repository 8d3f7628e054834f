"""DescribeUserScramCredentials (key 50), version 0: which users have which SCRAM mechanisms
(KIP-554). No keys and no salt leave the broker."""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kafkapy.server.admin.scram_admin import Described, ScramAdmin
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import ROW_UNITS, Turns


async def handle(
    admin: ScramAdmin,
    turns: Turns,
    context: RequestContext,
    request: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse:
    """The users asked for, or all for null and for none."""
    users = [user.name for user in request.users or ()]
    pace = turns.pace()
    rows = []
    for found in await admin.describe(users, pace):
        rows.append(_row(found))
        await pace.spend(ROW_UNITS)
    return DescribeUserScramCredentialsResponse(results=rows)


def _row(found: Described) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=found.user,
        error_code=found.error,
        error_message=found.message,
        credential_infos=[
            CredentialInfo(mechanism=mechanism, iterations=iterations)
            for mechanism, iterations in found.iterations.items()
        ],
    )


def refuse(
    request: DescribeUserScramCredentialsRequest, error: ApiError, version: int
) -> DescribeUserScramCredentialsResponse:
    """One error for all."""
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=error.message)
