"""Produce (key 0), versions 0-13.

Behaviour: each partition's batch is validated (`record.validation`) and appended to its log. The
answer is sent at once with acks=1, after the high watermark has passed the batch with acks=all, and
never with acks=0 (an error closes the connection). A batch that begins a transaction in its
partition waits until the transaction's coordinator has verified it, or has added the partition
(KIP-890). Version notes: v0-2 have message sets, which are converted; v8 adds record errors; v10
the current leader (KIP-951); from v12 on partitions are added, with transaction version 2; v13 has
topic ids, which `topic_ids` resolves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.system import GilPause
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkapy.protocol.produce_shape import ACKS, FIRST_VERSION_WITH_IDS
from kafkapy.record.batch_rules import ByteBudget, NeedsThread
from kafkapy.record.long_preparation import PreparationResult, prepare_fully
from kafkapy.record.validation import FAST_BYTES_MAX, PRODUCE_VERSION_V2_ONLY
from kafkapy.replication.delayed_produce import ProduceWait
from kafkapy.server.api import produce_append
from kafkapy.server.api.produce_answer import ProduceResponses
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.coordinators.transaction_verifier import PendingWrite, TransactionVerifier
from kafkapy.server.counts.metrics import Metrics
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.requests.outcomes import (
    CLOSE_CONNECTION,
    NO_RESPONSE,
    CloseConnection,
    Outcome,
    Pending,
)
from kafkapy.server.requests.turns import ROW_UNITS, SliceScheduler, Work, run_in_thread

_FIRST_VERSION_WITH_TRANSACTION_ABORTABLE = 11
_CONVERTED_BYTES_A_UNIT: Final = 4
_CHECKED_BYTES_A_UNIT: Final = 16


@dataclass(frozen=True)
class Handler:
    """Appends the records of producers."""

    replicas: ReplicaManager
    metrics: Metrics
    clock: Clock
    slices: SliceScheduler
    verifier: TransactionVerifier
    responses: ProduceResponses

    def handle(
        self, context: RequestContext, request: ProduceRequest
    ) -> Outcome[ProduceResponse] | Work[Outcome[ProduceResponse]]:
        """Append every partition's records, then answer as `acks` requires."""
        if request.acks not in ACKS:
            return refuse(request, ApiError(ErrorCode.INVALID_REQUIRED_ACKS), context.version)
        writes = _writings(request, context.version)
        if writes:
            transactional_id = request.transactional_id
            try:
                unverified = produce_append.unverified(
                    self.verifier, request.acks, transactional_id, writes
                )
            except ApiError as refusal:
                return refuse(request, refusal, context.version)
            if unverified:
                assert transactional_id is not None
                return self._verify(context, request, transactional_id, unverified)
        return self._append_all(context, request, {})

    def _verify(
        self,
        context: RequestContext,
        request: ProduceRequest,
        transactional_id: str,
        unverified: list[PendingWrite],
    ) -> Outcome[ProduceResponse]:
        """Verify partitions with the coordinator first. Later requests of the connection wait,
        because their batches follow these. The records are copied, because the next read overwrites
        them.
        """
        pending: Pending[ProduceResponse] = Pending(blocks=True)
        produce_append.copy_records(request)

        def on_verified(errors: dict[TopicPartition, ErrorCode]) -> None:
            if pending.done:
                return
            pending.complete_with(self.slices.run(self._append_all(context, request, errors)))

        self.verifier.verify(transactional_id, unverified, on_verified)
        # With a completed `Pending`, the connection would handle its next request in a nested call.
        return pending.response if pending.done else pending

    def _append_all(
        self,
        context: RequestContext,
        request: ProduceRequest,
        errors: dict[TopicPartition, ErrorCode],
    ) -> Work[Outcome[ProduceResponse]]:
        """Append row by row. Later requests of the connection wait while another thread prepares
        records, so that a producer's batches stay in order.
        """
        acks = request.acks
        row_count = sum(len(topic.partition_data) for topic in request.topic_data)
        is_large = max(row_count, len(request.topic_data)) > produce_append.APPENDS_PER_SLICE
        if is_large:
            produce_append.copy_records(request)
        is_old = context.version < PRODUCE_VERSION_V2_ONLY
        bytes_a_unit = _CONVERTED_BYTES_A_UNIT if is_old else _CHECKED_BYTES_A_UNIT
        room: ByteBudget | None = None
        waits: list[tuple[ProduceWait, PartitionProduceResponse]] = []
        responses = []
        failed = False
        for topic in request.topic_data:
            rows = []
            for data in topic.partition_data:
                row = PartitionProduceResponse(index=data.index)
                rows.append(row)
                try:
                    if errors:
                        _check_verified(context, TopicPartition(topic.name, data.index), errors)
                    try:
                        wait = self._append(context, topic, data, acks, row)
                    except NeedsThread as long:
                        if room is None:
                            room = ByteBudget(produce_append.copy_records(request), GilPause())
                        wait = yield from self._append_at_length(
                            context, topic, data, acks, row, long, room
                        )
                except ApiError as error:
                    failed = True
                    self.responses.refuse_row(topic.name, row, error)
                else:
                    if wait is not None:
                        waits.append((wait, row))
                if is_large:
                    brief_bytes = min(len(data.records or b""), FAST_BYTES_MAX)
                    yield ROW_UNITS * 2 + brief_bytes // bytes_a_unit + len(row.record_errors)
            responses.append(
                TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=rows
                )
            )
            if is_large:
                yield 1
        if acks == 0:
            return CLOSE_CONNECTION if failed else NO_RESPONSE
        response = ProduceResponse(responses=responses)
        if failed:
            self.responses.add_leaders(context, response)
        if not waits:
            return response
        return self._wait(request.timeout_ms, response, waits)

    def _append_at_length(
        self,
        context: RequestContext,
        topic: TopicProduceData,
        data: PartitionProduceData,
        acks: int,
        row: PartitionProduceResponse,
        long: NeedsThread,
        room: ByteBudget,
    ) -> Work[ProduceWait | None]:
        """Append records that another thread prepares. Repeats the preparation if the topic's
        configs change meanwhile.
        """
        records = data.records
        assert isinstance(records, bytes)  # copied by `copy_records`
        while True:
            prepare = partial(prepare_fully, records, long, room)
            # With acks=0, a batch is appended even if its producer has disconnected.
            ahead = yield from run_in_thread(prepare, may_drop=acks != 0)
            try:
                return self._append(context, topic, data, acks, row, ahead)
            except NeedsThread as again:
                long = again.with_traceback(None)  # the traceback has this frame: a cycle

    def _append(
        self,
        context: RequestContext,
        topic: TopicProduceData,
        data: PartitionProduceData,
        acks: int,
        row: PartitionProduceResponse,
        ahead: PreparationResult | None = None,
    ) -> ProduceWait | None:
        """Append one partition. Returns a `ProduceWait` if its replicas must still copy the
        records.
        """
        info, partition = produce_append.append(
            self.replicas, self.metrics, topic.name, data.index, data.records, acks,
            context.version, context.header.client_id, ahead,
            topic.topic_id if context.version >= FIRST_VERSION_WITH_IDS else None,
        )  # fmt: skip
        row.base_offset = info.first_offset
        row.log_append_time_ms = info.log_append_time
        row.log_start_offset = info.log_start_offset
        return produce_append.wait_of(info, partition) if acks == -1 else None

    def _wait(
        self,
        timeout_ms: int,
        response: ProduceResponse,
        waits: list[tuple[ProduceWait, PartitionProduceResponse]],
    ) -> Pending[ProduceResponse]:

        def respond() -> ProduceResponse:
            for wait, row in waits:
                row.error_code = wait.error
                if wait.error is not ErrorCode.NONE:
                    row.base_offset = -1
            return response

        return produce_append.respond_after_waits(
            self.replicas, self.clock, timeout_ms, [wait for wait, _ in waits], respond
        )


def _writings(request: ProduceRequest, version: int) -> list[PendingWrite]:
    """The transactional batches of a request."""
    found = []
    for topic in request.topic_data:
        for data in topic.partition_data:
            writing = produce_append.writing(topic.name, data.index, data.records, version)
            if writing is not None:
                found.append(writing)
    return found


def _check_verified(
    context: RequestContext,
    partition: TopicPartition,
    errors: dict[TopicPartition, ErrorCode],
) -> None:
    """
    Raises:
        ApiError: the coordinator did not confirm the partition; the error is that of the producer's
          version.
    """
    error = errors.get(partition)
    if error is None:
        return
    if error is ErrorCode.NOT_ENOUGH_REPLICAS:
        reason = "Unable to verify the partition has been added to the transaction"
    else:
        reason = "Partition was not added to the transaction"
    is_old = context.version < _FIRST_VERSION_WITH_TRANSACTION_ABORTABLE
    if error is ErrorCode.TRANSACTION_ABORTABLE and is_old:
        error = ErrorCode.INVALID_TXN_STATE
    raise ApiError(error, reason)


def refuse(
    request: ProduceRequest, error: ApiError, version: int
) -> ProduceResponse | CloseConnection:
    """The same error for every partition."""
    if request.acks == 0:
        return CLOSE_CONNECTION
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=data.index, error_code=error.code, base_offset=-1
                    )
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
