"""URLs of endpoints, as properties have them."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import of_listener
from kafkapy.security.oauth.http_request import endpoint_url


@pytest.mark.parametrize("url", ["http://h/p", "https://h", "file:///tmp/keys"])
def test_urls_that_can_be_asked(url: str) -> None:
    assert endpoint_url(of_listener({"u": f" {url} "}, "x"), "u") == url


@pytest.mark.parametrize("url", ["", "h/p", "ftp://h", "/tmp/keys"])
def test_others(url: str) -> None:
    properties = of_listener({"listener.name.x.u": url}, "X")
    with pytest.raises(ConfigError) as refused:
        endpoint_url(properties, "u")
    assert str(refused.value) == (
        f"listener.name.x.u={url} must be a URL that begins with http:, https:, file:"
    )
