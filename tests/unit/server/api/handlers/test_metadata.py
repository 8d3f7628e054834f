"""Auto creation of the topics in a Metadata request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkapy.server.api import handler_table
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import run_now
from tests.harness.cores.areas import area
from tests.harness.cores.server_parts import Parts


def test_creation_stops_when_the_client_disconnects(tmp_path: Path) -> None:
    """Topics of a request of 1 MB were created for minutes after its client had disconnected."""
    parts = Parts(tmp_path)
    parts.waiter.mark_complete()
    looks: list[bool] = []
    went = asyncio.Event()

    async def create(
        names: list[str], wait_ms: int, charge: object, is_wanted: Callable[[], bool]
    ) -> dict[str, int]:
        looks.append(is_wanted())
        await went.wait()
        looks.append(is_wanted())
        return {}

    async def go_away() -> None:
        handlers = area(
            handler_table.cluster,
            cluster=parts.cluster,
            waiter=parts.waiter,
            creator=SimpleNamespace(create=create),
            authorization=parts.authorization,
            quotas=parts.client_quotas,
            slices=parts.slices,
            tasks=parts.tasks,
        )
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        header: Any = SimpleNamespace(api_key=ApiKey.METADATA, api_version=9, client_id="c")
        context = RequestContext(header, "h", "L")
        pending: Any = run_now(handlers[ApiKey.METADATA](context, request))
        while not looks:
            await asyncio.sleep(0)
        pending.abandon()
        went.set()
        while len(looks) < 2:
            await asyncio.sleep(0)
        await parts.tasks.cancel()

    asyncio.run(asyncio.wait_for(go_away(), 10))
    assert looks == [True, False]
