"""The first checks of the four APIs of delegation tokens (`KafkaApis.allowTokenRequests`)."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.admin.token_admin import TokenAdmin
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import ANONYMOUS


class TokenRequests:
    """Admits requests for the cluster's tokens. `admin` is None if the broker has no secret.
    `security_protocol` returns that of a present listener, since listeners may be added.
    """

    def __init__(self, security_protocol: Callable[[str], str], admin: TokenAdmin | None) -> None:
        self._security_protocol = security_protocol
        self._admin = admin

    def admit(self, context: RequestContext) -> None:
        """Reject clients that authenticated with a delegation token, or not at all.

        Raises:
            ApiError: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
        """
        protocol = self._security_protocol(context.listener)
        is_anonymous = protocol == "SSL" and context.principal == ANONYMOUS  # no certificate
        if context.is_token or protocol == "PLAINTEXT" or is_anonymous:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)

    def admin(self) -> TokenAdmin:
        """The administration of the cluster's tokens.

        Raises:
            ApiError: DELEGATION_TOKEN_AUTH_DISABLED, the broker has no secret.
        """
        if self._admin is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        return self._admin

    def admit_and_get_admin(self, context: RequestContext) -> TokenAdmin:
        """`admit` and `admin` together."""
        self.admit(context)
        return self.admin()
