"""Which batches another thread prepares, and that what comes of it is what the rules say."""

from __future__ import annotations

import contextlib
import gc
import traceback
from typing import Any

import pytest

from kafkapy.common.errors import ApiError
from kafkapy.record import batch_rules, long_preparation, rewriting
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_rules import BatchRules, ByteBudget, NeedsThread, PreparedBatch
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.long_preparation import prepare_fully
from kafkapy.record.validation import FAST_BYTES_MAX, PRODUCE_VERSION_ZSTD, prepare_client_batch
from tests.harness.storage.batches import patched
from tests.harness.storage.legacy_messages import message, message_set, wrapper

NOW_MS = 1_767_225_600_000
PLAIN = BatchRules()
COMPACTED = BatchRules(compacted=True)
GZIP = BatchRules(codec=Codec.GZIP, level=-1)
LONG = NeedsThread(COMPACTED, NOW_MS, PRODUCE_VERSION_ZSTD)


def batch(codec: Codec = Codec.NONE, size: int = 10, key: bytes | None = b"k") -> bytes:
    return build_batch([RecordData(key, b"v" * size, NOW_MS)], codec=codec)


def fast_only(records: bytes, rules: BatchRules, version: int = PRODUCE_VERSION_ZSTD) -> Any:
    return prepare_client_batch(memoryview(records), rules, NOW_MS, version, fast_only=True)


@pytest.mark.parametrize(
    ("records", "rules", "version"),
    [
        (batch(Codec.GZIP), COMPACTED, 11),
        (batch(Codec.ZSTD), GZIP, 11),
        (batch(size=FAST_BYTES_MAX), COMPACTED, 11),
        (batch(size=FAST_BYTES_MAX), GZIP, 11),
        (patched(batch(Codec.GZIP), max_timestamp=-1), PLAIN, 11),
        (patched(batch(size=FAST_BYTES_MAX), max_timestamp=-1), PLAIN, 11),
        (wrapper(1, Codec.GZIP, message_set(1, [0])), PLAIN, 2),
        (message_set(1, [0]) + wrapper(1, Codec.GZIP, message_set(1, [0])), PLAIN, 2),
        (message(0, 0, b"k", b"v" * FAST_BYTES_MAX), PLAIN, 1),
    ],
    ids=[
        "walk compressed",
        "recompress",
        "walk",
        "compress",
        "time compressed",
        "time",
        "wrapper",
        "wrapper behind a plain message",
        "message set",
    ],
)
def test_the_loop_is_not_kept_by(records: bytes, rules: BatchRules, version: int) -> None:
    with pytest.raises(NeedsThread) as long:
        fast_only(records, rules, version)
    ahead = prepare_fully(records, long.value, ByteBudget(0))
    expected = prepare_client_batch(memoryview(records), rules, NOW_MS, version)
    assert ahead.take(rules, NOW_MS + 5, version) == expected


@pytest.mark.parametrize(
    ("records", "rules", "version"),
    [
        (batch(Codec.GZIP, 100_000), PLAIN, 11),
        (batch(Codec.GZIP, 100_000), GZIP, 11),
        (batch(), COMPACTED, 11),
        (batch(), GZIP, 11),
        (message_set(1, [0, 1]), PLAIN, 2),
    ],
    ids=["as it is", "the topic's codec", "a small walk", "a small batch", "a small set"],
)
def test_what_is_brief_is_done_at_once(records: bytes, rules: BatchRules, version: int) -> None:
    assert isinstance(fast_only(records, rules, version), PreparedBatch)


@pytest.mark.parametrize(
    ("records", "version"),
    [(batch(Codec.ZSTD), 11), (wrapper(1, Codec.LZ4, message(1, 0, b"k", b"v")), 2)],
    ids=["batch", "message set"],
)
def test_the_append_time_is_that_of_the_append(records: bytes, version: int) -> None:
    """It was the time before the batch queued: append times went back within a log."""
    rules = BatchRules(codec=Codec.GZIP, level=-1, log_append_time=True)
    with pytest.raises(NeedsThread) as long:
        fast_only(records, rules, version)
    ahead = prepare_fully(records, long.value, ByteBudget(0))
    taken = ahead.take(rules, NOW_MS + 5, version)
    assert taken == prepare_client_batch(memoryview(records), rules, NOW_MS + 5, version)
    assert (taken.log_append_time, taken.header.max_timestamp) == (NOW_MS + 5, NOW_MS + 5)
    validate_crc(taken.records, 0, taken.header)


def test_a_refusal_is_given_to_who_appends() -> None:
    records = batch(Codec.GZIP, key=None)
    with pytest.raises(NeedsThread) as long:
        fast_only(records, COMPACTED)
    ahead = prepare_fully(records, long.value, ByteBudget(0))
    with pytest.raises(ApiError, match="without key"):
        ahead.take(COMPACTED, NOW_MS, PRODUCE_VERSION_ZSTD)


def test_what_was_prepared_under_other_rules_is_prepared_again() -> None:
    records = batch(Codec.ZSTD)
    with pytest.raises(NeedsThread) as long:
        fast_only(records, GZIP)
    ahead = prepare_fully(records, long.value, ByteBudget(0))
    with pytest.raises(NeedsThread) as again:
        ahead.take(COMPACTED, NOW_MS, PRODUCE_VERSION_ZSTD)
    assert again.value.rules == COMPACTED


def test_a_refusal_holds_nothing_of_the_work() -> None:
    """The frames of a traceback would hold tens of megabytes until the garbage collector ran."""
    bomb = batch(Codec.GZIP, 1 << 20, key=None)
    ahead = prepare_fully(bomb, LONG, ByteBudget(0))
    with pytest.raises(ApiError, match="without key") as refusal:
        ahead.take(COMPACTED, NOW_MS, PRODUCE_VERSION_ZSTD)
    frames = list(traceback.walk_tb(refusal.value.__traceback__))
    assert [frame.f_code.co_filename for frame, _ in frames] == [
        __file__,
        long_preparation.__file__,
    ]
    assert refusal.value.__context__ is None


def test_a_refused_append_leaves_no_garbage() -> None:
    def append(records: bytes) -> None:
        ahead = prepare_fully(records, LONG, ByteBudget(0))
        with contextlib.suppress(ApiError):
            ahead.take(COMPACTED, NOW_MS, PRODUCE_VERSION_ZSTD)

    refused = batch(Codec.GZIP, 100_000, key=None)
    append(refused)  # what the first call imports is no garbage of an append
    gc.collect()
    gc.disable()
    try:
        append(refused)
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("records", "long"),
    [
        (batch(Codec.GZIP, 100_000), LONG),
        (build_batch([RecordData(b"k", None, NOW_MS)] * 1500), LONG),
        (batch(Codec.GZIP, 100_000), NeedsThread(BatchRules(codec=Codec.LZ4), NOW_MS, 11)),
        (wrapper(1, Codec.GZIP, message_set(1, [0] * 800)), NeedsThread(PLAIN, NOW_MS, 2)),
        (wrapper(1, Codec.GZIP, message(1, 0, None, bytes(60_000))), NeedsThread(PLAIN, NOW_MS, 2)),
    ],
    ids=["decompressed", "records", "recompressed", "messages", "a large message"],
)
def test_what_is_done_for_a_batch_uses_the_room_of_its_request(
    records: bytes, long: NeedsThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_rules, "BUDGET_BYTES_MIN", 50_000)
    budget = ByteBudget(0)
    assert prepare_fully(records, long, budget).take(long.rules, NOW_MS, 11).header
    with pytest.raises(ApiError, match="unfold to too many bytes"):
        prepare_fully(records, long, budget).take(long.rules, NOW_MS, 11)


def test_a_refused_batch_uses_room_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_rules, "BUDGET_BYTES_MIN", 50_000)
    budget = ByteBudget(0)
    for reason in ("without key", "unfold to too many bytes"):
        ahead = prepare_fully(batch(Codec.GZIP, 100_000, key=None), LONG, budget)
        with pytest.raises(ApiError, match=reason):
            ahead.take(COMPACTED, NOW_MS, PRODUCE_VERSION_ZSTD)


@pytest.mark.parametrize(
    ("records", "long", "limit"),
    [
        (batch(Codec.ZSTD, 100_000), LONG, "PRODUCED_BYTES_MAX"),
        (
            wrapper(1, Codec.GZIP, message(1, 0, b"k", bytes(100_000))),
            NeedsThread(PLAIN, NOW_MS, 2),
            "CONVERTED_BYTES_MAX",
        ),
    ],
    ids=["batch", "message set"],
)
def test_a_failed_decompression_uses_room_as_well(
    records: bytes, long: NeedsThread, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 MB of batches that do not decompress within the limit took the thread for 25 seconds."""
    monkeypatch.setattr(batch_rules, "BUDGET_BYTES_MIN", 60_000)
    monkeypatch.setattr(rewriting, limit, 50_000)
    budget = ByteBudget(0)
    for reason in ("decompress within 50000", "decompress within 50000", "unfold to too many"):
        ahead = prepare_fully(records, long, budget)
        with pytest.raises(ApiError, match=reason):
            ahead.take(long.rules, NOW_MS, 11)


def test_a_short_batch_that_fails_uses_little_room() -> None:
    """The other batches of the request are not refused for it."""
    damaged = batch(Codec.SNAPPY)
    cut = patched(damaged[:-5])
    budget = ByteBudget(0)
    for _ in range(3):
        with pytest.raises(ApiError, match="decompress"):
            prepare_fully(cut, LONG, budget).take(COMPACTED, NOW_MS, 11)
    assert prepare_fully(batch(Codec.GZIP), LONG, budget).take(COMPACTED, NOW_MS, 11).header


def test_others_get_their_turn_between_wrappers() -> None:
    """16,000 small ones are 16,000 brief releases of the interpreter lock, too brief to use."""
    pauses: list[int] = []
    sets = wrapper(1, Codec.LZ4, message(1, 0, b"k", None)) * 50
    ahead = prepare_fully(
        sets, NeedsThread(PLAIN, NOW_MS, 2), ByteBudget(0, lambda: pauses.append(1))
    )
    assert ahead.take(PLAIN, NOW_MS, 2).header.record_count == 50
    assert len(pauses) == 50
