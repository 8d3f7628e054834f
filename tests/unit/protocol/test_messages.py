"""Finding the classes of an API."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import request_class, response_class


@pytest.mark.parametrize("key", list(ApiKey))
def test_every_api_has_a_request_and_a_response(key: ApiKey) -> None:
    request, response = request_class(key), response_class(key)
    assert (key, key) == (request.API_KEY, response.API_KEY)
    assert request.__name__.removesuffix("Request") == response.__name__.removesuffix("Response")
    assert request_class(int(key)) is request


def test_an_unknown_key() -> None:
    with pytest.raises(ValueError, match="9999"):
        request_class(9999)


def test_importing_one_message_imports_no_other_and_nothing_slow() -> None:
    program = (
        "import sys; from kafkapy.protocol import compile, headers, client_connection;"
        "from kafkapy.protocol.messages.metadata import MetadataRequest;"
        "headers.encode_request(MetadataRequest(), 12, 1, 'x');"
        "print(*sorted(sys.modules))"
    )
    run = [sys.executable, "-c", program]
    loaded = set(subprocess.run(run, capture_output=True, text=True, check=True).stdout.split())
    messages = {name for name in loaded if name.startswith("kafkapy.protocol.messages.")}
    assert messages == {"kafkapy.protocol.messages.metadata"}
    assert loaded.isdisjoint({"asyncio", "dataclasses", "inspect", "socket", "random"})
