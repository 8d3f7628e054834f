"""Consume-transform-produce: records of one topic are copied to another, exactly once.

The offsets of the records that were read are committed in the transaction of their copies.
"""

from __future__ import annotations

from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages import fetch
from kafkapy.record.records import iter_records
from tests.simulation.clients import Refused
from tests.simulation.history import COPIES
from tests.simulation.transactional_clients import TransactionalClient, TransactionalIdSpec

INDEX: Final = 9
_FETCH_BYTES: Final = 800


class Transformer(TransactionalClient):
    """Reads partition 0 of the source from the group's offset on, and copies the records."""

    async def transaction(self) -> None:
        position = max(await self.committed_offset(), 0)
        found = await self.until_done(lambda: self._read(position))
        if not found:
            await self.pause(50, 200)
            return
        await self.add_partitions()
        await self.produce(0, [value for _, value in found])
        await self.commit_offset(found[-1][0] + 1)
        commits = self.world.random.random() < 0.85
        await self.end(commits)
        if commits:
            self.world.counts["records copied exactly once"] += len(found)

    async def _read(self, position: int) -> list[tuple[int, int]]:
        """The (offset, value) rows of the next records, possibly empty."""
        source = self.spec.source
        leader = await self.leader(source, 0)
        row = fetch.FetchPartition(
            partition=0, fetch_offset=position, partition_max_bytes=_FETCH_BYTES
        )
        request = fetch.FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            topics=[fetch.FetchTopic(topic=source, partitions=[row])],
        )
        answer = await self.fetched_row(leader, request, 10)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self.is_stopping:
            return []  # the records that it had copied are lost at their source
        if answer.error_code != ErrorCode.NONE:
            raise Refused(ErrorCode(answer.error_code).name)
        return [
            (record.offset, int(record.value or b""))
            for record in iter_records(self.validated(bytes(answer.records or b"")))
            if record.offset >= position
        ]


def copies_spec(source: str, rivals: int, is_v2: bool) -> TransactionalIdSpec:
    """The spec of the producers that copy `source`."""
    return TransactionalIdSpec("transformer", INDEX, COPIES, 1, source, rivals, is_v2=is_v2)
