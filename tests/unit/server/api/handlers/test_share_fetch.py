"""A share fetch whose connection closes while the fetch is handled in slices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.share_state import SharePartitionKey
from kafkapy.coordinator.shares.messages import ReadState, StateRequest, StateResult
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import RequestHeader
from kafkapy.protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.replication.shares.share_partition import ShareLimits
from kafkapy.replication.shares.share_sessions import ShareSessions
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handlers.share_fetch import Handler
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.share_requests import ShareRequests
from kafkapy.server.coordinators.share_fetches import ShareFetches
from kafkapy.server.coordinators.share_partitions import SharePartitions
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.partitions import TOPIC_ID

KEY = SharePartitionKey("g", TOPIC_ID, 0)
STEPS = 12
"""More than a fetch of one partition takes."""


class Client:
    """A connection, and the steps of the fetch that it has sent."""

    def __init__(self) -> None:
        self._is_open = True
        self._on_closed: Callable[[], None] = lambda: None

    def when_closed(self, step: Callable[[], None]) -> None:
        if self._is_open:
            self._on_closed = step
        else:
            step()

    def close(self) -> None:
        self._is_open = False
        self._on_closed()


class Broker:
    """Broker 1 with ten records; the share coordinator answers at once."""

    def __init__(self, directory: Path) -> None:
        parts = Parts(directory)
        parts.lead(isr=(1,), replicas=(1,))
        parts.announce("t")
        parts.replicas.append("t", 0, build_batch([RecordData(None, b"v", 1)] * 10), 1, 11)
        configs: Any = SimpleNamespace(
            limits=lambda group_id: ShareLimits(), isolation=lambda group_id: 0
        )
        persister: Any = SimpleNamespace(send=self._send)
        self.partitions = SharePartitions(
            *(parts.replicas, persister, configs, parts.clock, parts.timers.call_later),
            parts.slices,
        )
        shares: Any = SimpleNamespace(
            replicas=parts.replicas,
            metadata=parts.metadata,
            configs=configs,
            sessions=ShareSessions(1),
            partitions=self.partitions,
            fetches=ShareFetches(parts.replicas, self.partitions, configs, parts.clock),
        )
        requests = ShareRequests(shares, parts.features, Authorization(None))
        cluster: Any = SimpleNamespace(image=parts.metadata.image)
        self.handler = Handler(requests, cluster, parts.metrics, 1 << 20, parts.throttler)

    def _send(self, request: StateRequest, on_answer: Callable[[StateResult], None]) -> None:
        start_offset = 0 if isinstance(request, ReadState) else -1
        on_answer(StateResult(start_offset=start_offset))

    def acquired(self) -> int:
        """The number of records that a member has."""
        loaded = self.partitions.get_loaded(KEY)
        if loaded is None or loaded.shares is None:
            return 0
        runs = loaded.shares._records.runs
        return sum(run.last - run.first + 1 for run in runs if run.is_locked)


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def fetch(broker: Broker, client: Client) -> Any:
    wanted = FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(partition_index=0)])
    request = ShareFetchRequest(
        group_id="g", member_id="m", share_session_epoch=0, max_wait_ms=500,
        min_bytes=1, max_bytes=1 << 20, max_records=100, batch_size=100, topics=[wanted],
    )  # fmt: skip
    caller: Any = client
    header = RequestHeader(ApiKey.SHARE_FETCH, 2, 1, "test")
    context = RequestContext(header, "127.0.0.1", "PLAINTEXT", caller=caller)
    return broker.handler.handle(context, request)


@pytest.mark.parametrize("step", range(STEPS))
def test_other_members_get_the_records_of_a_client_that_disconnects_during_its_fetch(
    broker: Broker, step: int
) -> None:
    """They got them when the locks expired, after 30 s. The share partition stayed loaded, so a
    reset of the group's offsets was not seen."""
    client = Client()
    work = fetch(broker, client)
    for _ in range(step):
        next(work, None)
    client.close()
    for _ in work:
        pass
    assert broker.acquired() == 0
    assert broker.partitions.get_loaded(KEY) is None


def test_a_client_that_stays_gets_the_records(broker: Broker) -> None:
    work = fetch(broker, Client())
    assert len(list(work)) < STEPS
    assert broker.acquired() == 10
