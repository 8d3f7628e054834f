"""The name and version of a client's software, in ApiVersions from version 3 on (KIP-511)."""

from __future__ import annotations

import re
from typing import Final

from kafkapy.protocol.messages.api_versions import ApiVersionsRequest

_FIRST_VERSION: Final = 3
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def has_valid_software_name(request: ApiVersionsRequest, version: int) -> bool:
    """Whether a request is answered with versions (`ApiVersionsRequest.isValid`). Otherwise it is
    refused, and some clients retry with an older version.
    """
    return version < _FIRST_VERSION or (
        _SOFTWARE.fullmatch(request.client_software_name) is not None
        and _SOFTWARE.fullmatch(request.client_software_version) is not None
    )
