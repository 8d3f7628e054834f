"""Steps of the scenarios of share partitions: acquisitions, acknowledgements and stored changes.

A lock lasts 30 s, a record is delivered 3 times at most, and 10 are in flight at most.

Outcomes: `a gets 0-4 x2` (delivered the second time), or an error with its message; `stores` has
the change for the share coordinator: start offset, completed deliveries, batches as
`0-4 ACKNOWLEDGED x1`. Then the start offset and the next fetch offset, if they have changed.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.common.share_state import DeliveryState, StateBatch
from kafkapy.replication.shares.records_in_flight import AckType
from kafkapy.replication.shares.share_partition import (
    Acknowledgement,
    Change,
    RecordBatch,
    ShareLimits,
    SharePartition,
)
from tests.harness.scenarios.interpreter import World, duration_ms, step

TYPES = {
    "accepts": AckType.ACCEPT,
    "releases": AckType.RELEASE,
    "rejects": AckType.REJECT,
    "renews": AckType.RENEW,
    "skips": AckType.GAP,
}


class SharePartitionWorld(World):
    """One share partition; changes are stored at once unless the coordinator is slow."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.partition = SharePartition(ShareLimits(10, 3, 30_000))
        self._is_slow = False
        self._storing: list[Change] = []
        self._last_facts = self.facts()

    def facts(self) -> dict[str, str]:
        return {
            "starts at": str(self.partition.start_offset),
            "fetches from": str(self.partition.next_fetch_offset),
        }

    @step("it begins with {batches...}")
    def begins(self, batches: str, at: str = "0") -> None:
        rows = [] if batches == "nothing" else batches.split(" and ")
        self.partition.restore(int(at), 0, [_state(row) for row in rows])

    @step("it allows no renewal")
    def allows_no_renewal(self) -> None:
        self.partition.limits = self.partition.limits._replace(may_renew=False)

    @step("{member} fetches {batches...}")
    def fetches(
        self,
        member: str,
        batches: str,
        max: str = "100",
        size: str = "100",
        strictly: str | None = None,
        aborted: str = "",
    ) -> None:
        """Acquire of these batches of the log, from the next fetch offset on."""
        if not self.partition.can_acquire:
            self.report("full")
            return
        found = self.partition.acquire(
            self.now_ms,
            member,
            self.partition.next_fetch_offset,
            _batches(batches),
            int(max),
            int(size),
            is_limit_strict=strictly is not None,
            aborted=_batches(aborted),
        )
        rows = [f"{each.first}-{each.last} x{each.delivery_count}" for each in found]
        self.report(f"gets {' '.join(rows) or 'nothing'}")

    @step("{member} {verb}: {ranges...}")
    def acknowledges(self, member: str, verb: str, ranges: str) -> None:
        """`a accepts: 0-4`; `a sends: 0-2 accept release reject` has a type for each record."""
        if verb == "sends":
            first, *names = ranges.split()
            types = [AckType[name.upper()] for name in names]
            batches = [Acknowledgement(*_batches(first)[0], types)]
        else:
            batches = [Acknowledgement(*each, [TYPES[verb]]) for each in _batches(ranges)]
        try:
            change = self.partition.acknowledge(self.now_ms, member, batches)
        except ApiError as error:
            self.report(f"{error.code.name}: {error.message}")
            return
        self._store(change)

    @step("the session of {member} ends")
    def ends(self, member: str) -> None:
        self._store(self.partition.release(member))

    @step("{number} {unit} pass")
    def passes(self, number: str, unit: str) -> None:
        self.now_ms += duration_ms(f"{number} {unit}")
        due_ms = self.partition.next_deadline_ms()
        if due_ms is not None and due_ms <= self.now_ms:
            self._store(self.partition.expire(self.now_ms))

    @step("the log starts at {offset}")
    def log_starts(self, offset: str) -> None:
        self.partition.advance_start(int(offset))

    @step("the coordinator is slow")
    def slow(self) -> None:
        self._is_slow = True

    @step("the change {outcome}")
    def ends_storing(self, outcome: str) -> None:
        """The oldest change `succeeds` or `fails`."""
        self._answer(self._storing.pop(0), is_stored=outcome == "succeeds")

    def _store(self, change: Change | None) -> None:
        if change is None:
            return
        rows = [_text(batch) for batch in change.batches]
        complete = self.partition.delivery_complete_count
        counts = f"start {self.partition.start_offset}, complete {complete}"
        self.report(f"stores {counts}: {' '.join(rows)}")
        self._storing.append(change)
        if not self._is_slow:
            self._answer(self._storing.pop(0), is_stored=True)

    def _answer(self, change: Change, *, is_stored: bool) -> None:
        answer = self.partition.complete_change if is_stored else self.partition.roll_back_change
        answer(change)


def _batches(text: str) -> list[RecordBatch]:
    return [RecordBatch(*map(int, each.split("-"))) for each in text.split()]


def _state(text: str) -> StateBatch:
    offsets, state, count = text.split()
    return StateBatch(*map(int, offsets.split("-")), DeliveryState[state], int(count[1:]))


def _text(batch: StateBatch) -> str:
    return f"{batch.first}-{batch.last} {batch.state.name} x{batch.delivery_count}"
