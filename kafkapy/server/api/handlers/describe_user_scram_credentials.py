"""DescribeUserScramCredentials (key 50), version 0: the SCRAM mechanisms of users (KIP-554). Keys
and salts are not returned.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kafkapy.server.admin.scram_admin import DescribedUser, ScramAdmin
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import ROW_UNITS, SliceScheduler


async def handle(
    admin: ScramAdmin,
    slices: SliceScheduler,
    context: RequestContext,
    request: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse:
    """Describe the requested users; all users for null or an empty list."""
    users = [user.name for user in request.users or ()]
    pace = slices.pace()
    rows = []
    for found in await admin.describe(users, pace):
        rows.append(_row(found))
        await pace.charge(ROW_UNITS)
    return DescribeUserScramCredentialsResponse(results=rows)


def _row(found: DescribedUser) -> DescribeUserScramCredentialsResult:
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
    """One error for the whole request."""
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=error.message)
