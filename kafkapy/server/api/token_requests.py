"""The first checks of the four APIs of delegation tokens (`KafkaApis.allowTokenRequests`)."""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.admin.token_admin import TokenAdmin
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import ANONYMOUS


def admitted(context: RequestContext) -> None:
    """Reject clients that authenticated with a delegation token, or not at all.

    Raises:
        ApiError: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
    """
    protocol = context.broker.config.security_protocol(context.listener)
    is_nobody = protocol == "SSL" and context.principal == ANONYMOUS  # no certificate was shown
    if context.is_token or protocol == "PLAINTEXT" or is_nobody:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def token_admin(context: RequestContext) -> TokenAdmin:
    """The tokens of the cluster.

    Raises:
        ApiError: DELEGATION_TOKEN_AUTH_DISABLED, the broker has no secret.
    """
    admin = context.broker.token_admin
    if admin is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return admin
