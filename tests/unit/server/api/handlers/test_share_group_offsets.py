"""Offsets of share groups, by callers that may not use all topics."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import alter_share_group_offsets as alters
from kafkapy.protocol.messages import delete_share_group_offsets as deletes
from kafkapy.protocol.messages import describe_share_group_offsets as describes
from kafkapy.security.acls import ResourceKind
from kafkapy.server.api import handler_table
from kafkapy.server.api.authorization import Authorization
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts
from tests.harness.cores.znodes import run

GROUP = "g"
KNOWN, UNKNOWN = "present-topic", "missing-topic"


class AllowsGroups:
    """Allows everything on groups, and nothing on topics."""

    def is_allowed(self, *need: Any) -> bool:
        return need[-2] is ResourceKind.GROUP


class NoOffsets:
    """A group without share partitions."""

    async def share_partitions(self, group_id: str) -> set[Any]:
        return set()

    async def describe(self, group_id: str, partitions: Any) -> dict[Any, Any]:
        return {}

    alter = delete = describe


def altered(topic: str) -> Any:
    row = alters.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)
    rows = alters.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[row])
    return alters.AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[rows])


def deleted(topic: str) -> Any:
    row = deletes.DeleteShareGroupOffsetsRequestTopic(topic_name=topic)
    return deletes.DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=[row])


def described(topic: str) -> Any:
    row = describes.DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[0])
    group = describes.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=[row])
    return describes.DescribeShareGroupOffsetsRequest(groups=[group])


@pytest.mark.parametrize(
    ("key", "request_for"),
    [
        (ApiKey.ALTER_SHARE_GROUP_OFFSETS, altered),
        (ApiKey.DELETE_SHARE_GROUP_OFFSETS, deleted),
        (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, described),
    ],
)
def test_a_client_with_a_right_to_a_group_does_not_learn_which_topics_exist(
    tmp_path: Path, key: ApiKey, request_for: Any
) -> None:
    """A refused row had the id of a topic that exists, and zeros for one that does not."""
    parts = Parts(tmp_path)
    parts.announce(KNOWN)
    authorizer: Any = AllowsGroups()
    shares: Any = SimpleNamespace(groups=None, offsets=NoOffsets(), metadata=parts.metadata)
    handlers: Any = handler_table.share_offsets(
        shares, parts.features, Authorization(authorizer), parts.tasks, parts.slices
    )

    def ask(topic: str) -> str:
        context = request_context(key, 0)
        return repr(run(handlers[key](context, request_for(topic)))).replace(topic, "TOPIC")

    answer = ask(KNOWN)
    assert f"error_code={ErrorCode.TOPIC_AUTHORIZATION_FAILED!r}" in answer
    assert answer == ask(UNKNOWN)
