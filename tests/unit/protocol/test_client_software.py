"""Names and versions of software that Kafka takes."""

from __future__ import annotations

import pytest

from kafkapy.protocol.client_software import has_valid_software_name
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest


@pytest.mark.parametrize(
    ("name", "version", "is_valid"),
    [
        ("apache-kafka-java", "3.9.1", True),
        ("c", "1", True),
        ("librdkafka", "2.3.0-rc.1", True),
        ("", "1", False),
        ("c", "", False),
        ("c", "1.0_beta", False),
        ("c", "1.", False),
        ("-c", "1", False),
        ("c", "1\n", False),
        ("caf\u00e9", "1", False),
    ],
)
def test_names_and_versions(name: str, version: str, is_valid: bool) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert has_valid_software_name(request, 3) is is_valid
    assert has_valid_software_name(request, 2)
