"""Preparation of batches that takes long: they are decompressed, recompressed, read or converted.

The broker's event loop calls `validation` with `fast_only`, and gets `NeedsThread` instead of a
long wait. Another thread then prepares the batch (`prepare_fully`), under the same rules, and the
event loop appends the result (`PreparationResult`).
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_header import NO_TIMESTAMP
from kafkapy.record.batch_rules import BatchRules, ByteBudget, NeedsThread, PreparedBatch
from kafkapy.record.builder import write_header
from kafkapy.record.validation import prepare_client_batch


class PreparationResult:
    """The result of a preparation under some rules."""

    __slots__ = ("_outcome", "_rules")

    def __init__(self, rules: BatchRules, outcome: PreparedBatch | ApiError) -> None:
        self._rules = rules
        self._outcome: PreparedBatch | ApiError | None = outcome

    def take(self, rules: BatchRules, now_ms: int, produce_version: int) -> PreparedBatch:
        """The prepared batch. Works once: a stored error would form a reference cycle with its
        traceback, whose frames refer to this object and the records.

        Raises:
            ApiError: as `prepare_client_batch`.
            NeedsThread: the rules have changed; the batch is kept.
        """
        if rules != self._rules:
            raise NeedsThread(rules, now_ms, produce_version)
        outcome, self._outcome = self._outcome, None
        assert outcome is not None
        if isinstance(outcome, PreparedBatch):
            is_timed = outcome.log_append_time != NO_TIMESTAMP
            return _with_append_time(outcome, now_ms) if is_timed else outcome
        try:
            raise outcome
        finally:
            del outcome


def _with_append_time(prepared: PreparedBatch, now_ms: int) -> PreparedBatch:
    """The batch with the time of its append. While the preparation waited for the thread, other
    batches were appended, and append times must not decrease within a log.
    """
    batch = bytearray(prepared.records)
    header = write_header(batch, prepared.header._replace(max_timestamp=now_ms))
    return PreparedBatch(header, batch, now_ms)


def without_traceback(error: ApiError) -> ApiError:
    """The error without its traceback, whose frames would keep tens of megabytes in memory until
    the garbage collector finds the reference cycle."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def prepare_fully(records: bytes, deferred: NeedsThread, budget: ByteBudget) -> PreparationResult:
    """Prepare a batch in the calling thread. `budget` is that of the request."""
    outcome: PreparedBatch | ApiError
    try:
        budget.check()
        outcome = prepare_client_batch(
            memoryview(records),
            deferred.rules,
            deferred.now_ms,
            deferred.produce_version,
            budget=budget,
        )
    except ApiError as refusal:
        outcome = without_traceback(refusal)
    return PreparationResult(deferred.rules, outcome)
