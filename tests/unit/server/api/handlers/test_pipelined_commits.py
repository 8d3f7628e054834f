"""A commit of offsets, and what is sent behind it on the same connection."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC
from kafkapy.protocol.framing import SIZE_PREFIX
from kafkapy.protocol.headers import decode_response
from kafkapy.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkapy.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkapy.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from tests.harness.cores.hot_path import Client
from tests.harness.cores.server_parts import Parts

COMMIT, OFFSETS, FETCH = 6, 5, 12


def commit(offset: int) -> OffsetCommitRequest:
    row = OffsetCommitRequestPartition(committed_offset=offset, committed_metadata="")
    return OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[row])],
    )


def replicate(follower: Client, end_offset: int) -> None:
    """Broker 2 has the partition up to there."""
    row = FetchPartition(fetch_offset=end_offset, partition_max_bytes=1)
    topic = FetchTopic(topic=GROUP_METADATA_TOPIC, partitions=[row])
    follower.fetches(FetchRequest(replica_id=2, max_bytes=1, session_epoch=-1, topics=[topic]))


async def both_responses(parts: Parts) -> bytes:
    """The responses to a commit, and to a fetch of its offset behind it."""
    client, follower = Client(parts), Client(parts)
    client.sends(COMMIT, commit(7))()
    wanted = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    client.sends(OFFSETS, OffsetFetchRequest(group_id="g", topics=[wanted]))()
    assert not client.transport.sent
    replicate(follower, 1)
    await parts.slices.next_turn()  # the response of the commit is made in one
    return client.transport.sent


def test_a_client_reads_the_offset_that_it_commits(tmp_path: Path) -> None:
    """Clients send both at once, and Kafka handles the requests of a connection in turn."""
    parts = Parts(tmp_path)
    parts.coordinate(isr=(1, 2), replicas=(1, 2))
    while 0 in parts.timers.delays_s:
        parts.timers.fire()  # the groups are loaded
    parts.announce("t")
    sent = asyncio.run(both_responses(parts))
    size = int.from_bytes(sent[:SIZE_PREFIX], "big") + SIZE_PREFIX
    _, committed = decode_response(OffsetCommitResponse, COMMIT, sent[SIZE_PREFIX:size])
    assert committed.topics[0].partitions[0].error_code == 0
    _, found = decode_response(OffsetFetchResponse, OFFSETS, sent[size + SIZE_PREFIX :])
    assert found.topics[0].partitions[0].committed_offset == 7
