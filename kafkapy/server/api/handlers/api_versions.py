"""ApiVersions (key 18), versions 0-4.

Behaviour: the table of `handlers.SERVED`. A version above ours is answered in v0 with
UNSUPPORTED_VERSION and the range of this API alone (KIP-511), so that the client asks again.
Version notes: v3 carries the client's software name; the response header stays v0 at every version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.served import Api

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(
    served: Mapping[int, Api], context: RequestContext, request: ApiVersionsRequest | None
) -> ApiVersionsResponse:
    """List the served APIs; `request` is None when its version is unknown."""
    if request is None:
        mine = served[ApiKey.API_VERSIONS]
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersion(
                    api_key=ApiKey.API_VERSIONS,
                    min_version=mine.min_version,
                    max_version=mine.max_version,
                )
            ],
        )
    if context.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=row.min_version, max_version=row.max_version)
            for key, row in sorted(served.items())
        ],
        finalized_features_epoch=0,
    )
