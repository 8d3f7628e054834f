"""Batches whose preparation takes long: they are decompressed, recompressed, walked or converted.

The broker's event loop asks `validation` to be brief, which then raises `TakesLong` instead of
doing the work. Another thread does it (`prepare_at_length`), under the same rules, and the loop
appends what came of it (`PreparedAhead`).
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_rules import BatchRules, PreparedBatch, TakesLong
from kafkapy.record.validation import prepare_client_batch


class PreparedAhead:
    """The result of a preparation under some rules."""

    __slots__ = ("_outcome", "_rules")

    def __init__(self, rules: BatchRules, outcome: PreparedBatch | ApiError) -> None:
        self._rules = rules
        self._outcome = outcome

    def batch(self, rules: BatchRules, now_ms: int, produce_version: int) -> PreparedBatch:
        """The prepared batch.

        Raises:
            ApiError: as `prepare_client_batch`.
            TakesLong: the rules are others now.
        """
        if rules != self._rules:
            raise TakesLong(rules, now_ms, produce_version)
        if isinstance(self._outcome, ApiError):
            raise self._outcome
        return self._outcome


def without_frames(error: ApiError) -> ApiError:
    """The error alone. Kept with its traceback, it would hold what the frames hold, tens of
    megabytes, until the garbage collector finds the loop."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def prepare_at_length(records: bytes, long: TakesLong) -> PreparedAhead:
    """Do it, in whichever thread this is called."""
    outcome: PreparedBatch | ApiError
    try:
        outcome = prepare_client_batch(
            memoryview(records), long.rules, long.now_ms, long.produce_version
        )
    except ApiError as refusal:
        outcome = without_frames(refusal)
    return PreparedAhead(long.rules, outcome)
