"""Readers of committed records, during the run and at its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages import fetch
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.control import ControlRecordType, control_type_id
from kafkapy.record.records import batch_records
from kafkapy.server.interbroker.node_client import NodeUnavailable
from tests.simulation.clients import METADATA_MAX_AGE_S, Client, Refused
from tests.simulation.history import Answer, SimHistory

if TYPE_CHECKING:
    from tests.simulation.world import World

_FETCH_BYTES: Final = 8192


class CommittedReader(Client):
    """Reads one partition as a read_committed consumer does, up to offset `end` once that is set.
    `values` are the values that it found."""

    def __init__(
        self,
        world: World,
        history: SimHistory,
        host: str,
        at: TopicPartition,
        end: int | None = None,
    ) -> None:
        super().__init__(world, host)
        self.at = at
        self.position = 0
        self.end = end
        self.values: list[int] = []
        self._history = history
        self._known = Answer(-1, 0)
        self.spawn(self._run())

    @property
    def _has_all(self) -> bool:
        return self.is_stopping or (self.end is not None and self.position >= self.end)

    async def _run(self) -> None:
        while not self._has_all:
            try:
                await self._poll()
            except (NodeUnavailable, Refused):
                await self.pause(50, 150)
        self.is_done = True

    async def _poll(self) -> None:
        """Fetch until a fetch is refused, or the metadata is old."""
        leader = await self.leader(*self.at)
        loop = asyncio.get_running_loop()
        metadata_expiry_s = loop.time() + METADATA_MAX_AGE_S
        while not self._has_all and loop.time() < metadata_expiry_s:
            row = fetch.FetchPartition(
                partition=self.at.partition,
                fetch_offset=self.position,
                partition_max_bytes=_FETCH_BYTES,
            )
            request = fetch.FetchRequest(
                max_wait_ms=300,
                min_bytes=1,
                max_bytes=_FETCH_BYTES,
                isolation_level=1,
                topics=[fetch.FetchTopic(topic=self.at.topic, partitions=[row])],
            )
            answer = await self.fetched_row(leader, request, 10)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._history.out_of_range(*self.at, self.position, self._known)
                self.is_stopping = True
            if answer.error_code != ErrorCode.NONE:
                raise Refused(ErrorCode(answer.error_code).name)
            if answer.high_watermark >= self.position:  # else these records are gone, or will be
                self._known = self._history.answer(leader, *self.at)
            aborted = answer.aborted_transactions or ()
            begun = sorted((a.first_offset, a.producer_id) for a in aborted)
            self._take(self.validated(bytes(answer.records or b"")), begun)

    def _take(self, records: bytes, begun: list[tuple[int, int]]) -> None:
        """Keep the values of committed transactions. `begun` are the aborted transactions, which
        consumers skip by KIP-98."""
        aborting: set[int] = set()
        for position, header in iter_headers(records):
            while begun and begun[0][0] <= header.last_offset:
                aborting.add(begun.pop(0)[1])
            for record in batch_records(records, header, position):
                if header.is_control:
                    if control_type_id(record.key) == ControlRecordType.ABORT:
                        aborting.discard(header.producer_id)
                elif header.producer_id not in aborting and record.offset >= self.position:
                    self.values.append(int(record.value or b""))
            self.position = header.next_offset
