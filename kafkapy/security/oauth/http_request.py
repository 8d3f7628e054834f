"""A small HTTP request, and the error for a failed one."""

from __future__ import annotations

import urllib.parse
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.common.prefixed_properties import PrefixedProperties

_SCHEMES: Final = ("http", "https", "file")


class HttpRequest(NamedTuple):
    """A POST if it has a body, else a GET or the read of a file. `tls` has `ssl.*` properties. The
    longer of the two timeouts limits each step, because urllib has only one.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 10.0
    tls: tuple[tuple[str, str], ...] = ()


class FetchFailed(KafkapyError):
    """A request failed. If `is_final`, it should not be sent again."""

    def __init__(self, reason: str, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


def endpoint_url(properties: PrefixedProperties, name: str) -> str:
    """The URL of a property. Raises ConfigError: it is not a URL, or has an unknown scheme."""
    url = properties.text(name).strip()
    if urllib.parse.urlsplit(url).scheme not in _SCHEMES:
        raise ConfigError(
            f"{properties.key(name)}={url} must be a URL that begins with"
            f" {', '.join(f'{scheme}:' for scheme in _SCHEMES)}"
        )
    return url
