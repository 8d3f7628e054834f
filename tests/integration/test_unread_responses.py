"""Clients that ask for records and do not read them: what they can take from a broker that serves
others, and for how long."""

from __future__ import annotations

import contextlib
import os

from dev.bench.loads import fetch_request
from kafkapy.protocol.headers import encode_request
from kafkapy.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.conftest import BrokerFactory
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.processes.waiting import wait_until
from tests.integration.test_large_fetches import filled, records_of

IDLE_MS = 3_000
ROWS, READERS = 700, 20


def descriptors(broker: BrokerProcess) -> list[str]:
    """Files and sockets on which the broker's descriptors are open."""
    found = []
    for name in os.listdir(f"/proc/{broker.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{broker.pid}/fd/{name}"))
    return found


def many_rows(topic: str, size: int) -> bytes:
    """One small request that names one partition many times."""
    rows = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)] * ROWS
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 30,
        session_epoch=-1,
        topics=[FetchTopic(topic="", partitions=rows), FetchTopic(topic=topic, partitions=rows)],
    )
    return encode_request(request, 12, 1, "unread")


def test_unread_responses_share_a_descriptor_and_end_with_the_idle_limit(
    broker_factory: BrokerFactory,
) -> None:
    broker = broker_factory({"connections.max.idle.ms": str(IDLE_MS)})
    topic = "unread"
    content = filled(broker, topic)
    before = len(descriptors(broker))
    with contextlib.ExitStack() as opened:
        for _ in range(READERS):
            reader = opened.enter_context(RawConnection(broker.bootstrap_servers))
            reader.send(many_rows(topic, len(content)) + fetch_request(topic, 0, len(content)))

        def held() -> int:
            return sum(path.endswith(".log") and topic in path for path in descriptors(broker))

        wait_until(lambda: held() == 2, "the file is held, once, besides the log's own descriptor")
        assert len(descriptors(broker)) <= before + READERS + 1
        with RawConnection(broker.bootstrap_servers) as other:
            other.send(fetch_request(topic, 0, len(content)))
            assert records_of(other.read_frame(), topic) == content
        wait_until(
            lambda: held() == 1 and len(descriptors(broker)) <= before,
            "the readers are closed by the broker, though they wait for answers",
        )
    assert broker.running
    assert "Traceback" not in broker.output_text()
