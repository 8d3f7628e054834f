"""Changes of topics wait for the metadata once for all topics of a request, not for each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkapy.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.server.admin.topic_admin import CreatedTopic
from kafkapy.server.api import handler_table
from kafkapy.server.api.authorization import Authorization
from tests.harness.cores.areas import area
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts

NAMES = ("a", "b", "c", "d")
TIMEOUT_MS = 400


def create() -> Any:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name) for name in NAMES], timeout_ms=TIMEOUT_MS
    )


def grow() -> Any:
    topics = [CreatePartitionsTopic(name=name, count=5) for name in NAMES]
    return CreatePartitionsRequest(topics=topics, timeout_ms=TIMEOUT_MS)


def delete() -> Any:
    return DeleteTopicsRequest(topic_names=list(NAMES), timeout_ms=TIMEOUT_MS)


class Changing:
    """Handlers over an admin that writes down when it is asked for a change."""

    def __init__(self, directory: Path) -> None:
        self.parts = Parts(directory)
        self.parts.announce(*NAMES, leader=-1)
        self.times_s: list[float] = []
        admin = SimpleNamespace(
            create_topic=self._change, create_partitions=self._change, delete_topic=self._change
        )
        self.handlers = area(
            handler_table.topics,
            admin=admin,
            controller=SimpleNamespace(controller=SimpleNamespace(is_active=True)),
            metadata=self.parts.metadata,
            waiter=self.parts.waiter,
            configs=Mock(topic=lambda name, configs: []),
            authorization=Authorization(None),
            quotas=self.parts.client_quotas,
            slices=self.parts.slices,
        )

    async def _change(self, name: str, *args: Any) -> CreatedTopic:
        self.times_s.append(asyncio.get_running_loop().time())
        return CreatedTopic(name, ZERO_UUID, {0: (1,)}, {})


@pytest.mark.parametrize(
    ("key", "make", "rows"),
    [
        (ApiKey.CREATE_TOPICS, create, "topics"),
        (ApiKey.CREATE_PARTITIONS, grow, "results"),
        (ApiKey.DELETE_TOPICS, delete, "responses"),
    ],
)
def test_all_topics_share_the_timeout(tmp_path: Path, key: ApiKey, make: Any, rows: str) -> None:
    """Ten topics whose replicas are down took ten timeouts; the client had given up long before,
    and the last ones were changed behind its back."""
    changing = Changing(tmp_path)

    async def work() -> tuple[Any, float]:
        began_s = asyncio.get_running_loop().time()
        handle: Any = changing.handlers[key]
        response = await handle(request_context(key, 1), make())
        return response, asyncio.get_running_loop().time() - began_s

    response, took_s = asyncio.run(work())
    assert len(changing.times_s) == len(NAMES)
    assert changing.times_s[-1] - changing.times_s[0] < TIMEOUT_MS / 1000
    codes = [row.error_code for row in getattr(response, rows)]
    assert codes == [ErrorCode.REQUEST_TIMED_OUT] * len(NAMES)
    assert TIMEOUT_MS / 1000 <= took_s < 3 * TIMEOUT_MS / 1000
