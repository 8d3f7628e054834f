"""Batches whose preparation takes long: they are decompressed, recompressed, walked or converted.

The broker's event loop asks `validation` to be brief, which then raises `TakesLong` instead of
doing the work. Another thread does it (`prepare_at_length`), under the same rules, and the loop
appends what came of it (`PreparedAhead`).
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.record.batch_rules import BatchRules, PreparedBatch, Room, TakesLong
from kafkapy.record.validation import prepare_client_batch


class PreparedAhead:
    """The result of a preparation under some rules."""

    __slots__ = ("_outcome", "_rules")

    def __init__(self, rules: BatchRules, outcome: PreparedBatch | ApiError) -> None:
        self._rules = rules
        self._outcome: PreparedBatch | ApiError | None = outcome

    def take(self, rules: BatchRules, now_ms: int, produce_version: int) -> PreparedBatch:
        """The prepared batch, once. A refusal that stayed here would be in a loop with its
        traceback, whose frames hold this and the records.

        Raises:
            ApiError: as `prepare_client_batch`.
            TakesLong: the rules are others now; the batch is still here.
        """
        if rules != self._rules:
            raise TakesLong(rules, now_ms, produce_version)
        outcome, self._outcome = self._outcome, None
        assert outcome is not None
        if isinstance(outcome, PreparedBatch):
            return outcome
        try:
            raise outcome
        finally:
            del outcome


def without_frames(error: ApiError) -> ApiError:
    """The error alone. Kept with its traceback, it would hold what the frames hold, tens of
    megabytes, until the garbage collector finds the loop."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def prepare_at_length(records: bytes, long: TakesLong, room: Room) -> PreparedAhead:
    """Do it, in whichever thread this is called. `room` is that of the request."""
    outcome: PreparedBatch | ApiError
    try:
        room.check()
        outcome = prepare_client_batch(
            memoryview(records), long.rules, long.now_ms, long.produce_version, room=room
        )
    except ApiError as refusal:
        outcome = without_frames(refusal)
    return PreparedAhead(long.rules, outcome)
