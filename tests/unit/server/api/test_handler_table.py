"""Every API that is served is handled, and by one area."""

from __future__ import annotations

from collections import Counter

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.server.api import handler_table
from kafkapy.server.api.handlers import SERVED
from tests.harness.cores.areas import area

AREAS = (
    handler_table.logs,
    handler_table.groups,
    handler_table.share_members,
    handler_table.share_offsets,
    handler_table.transactions,
    handler_table.cluster,
    handler_table.topics,
    handler_table.configs,
    handler_table.acls,
    handler_table.quotas,
    handler_table.scram,
    handler_table.delegation_tokens,
    handler_table.controller,
    handler_table.control_requests,
    handler_table.telemetry,
)


def test_each_api_is_of_one_area() -> None:
    found = Counter(key for build in AREAS for key in area(build))
    found.update((ApiKey.PRODUCE, ApiKey.FETCH))
    assert found == Counter(list(SERVED))
