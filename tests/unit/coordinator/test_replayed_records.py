"""Whatever a batch of an internal topic holds, those before and behind it are replayed."""

from __future__ import annotations

import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.replayed_records import replayed_records
from kafkapy.record.builder import build_batch
from kafkapy.record.codec import Codec
from tests.harness.storage.batches import patched, raw_batch, row_bytes, rows
from tests.harness.storage.legacy_messages import message_set, wrapper

T0 = TopicPartition("__consumer_offsets", 0)
LOG = logging.getLogger("tests")
BEFORE = build_batch(rows(2), base_offset=0)
AFTER = build_batch(rows(2), base_offset=50)
SOUND = {0, 1, 50, 51}


def offsets(records: bytes) -> list[int]:
    return [record.offset for _, record in replayed_records(LOG, T0, records)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=80), st.integers(-9, 2**31 - 1), st.integers(0, 0x7F))
def test_noise_between_two_batches_costs_neither(
    caplog: pytest.LogCaptureFixture, payload: bytes, count: int, attributes: int
) -> None:
    caplog.clear()
    noise = raw_batch(payload, count, attributes, base_offset=10, last_offset_delta=30)
    found = offsets(BEFORE + noise + AFTER)
    assert set(found) >= SOUND
    assert all(10 <= offset <= 40 for offset in found if offset not in SOUND)
    lines = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(lines) <= 1, "one line a batch, however many of its records are bad"


def test_the_line_says_how_much_of_which_batch_was_lost_and_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = row_bytes(b"\x00\x00\x02\x02k\x7fv\x00")
    payload = build_batch(rows(1))[61:] + bad
    assert offsets(raw_batch(payload, 2, base_offset=10)) == [10]
    assert caplog.messages == [
        "Skipped 1 of the 2 records in the batch at offset 10 of __consumer_offsets-0:"
        " Record 1 of the batch at offset 10 is malformed: field length -64 is out of bounds"
    ]


def test_a_length_that_is_wrong_hides_what_follows_it_in_the_batch() -> None:
    payload = b"\x03" + build_batch(rows(1))[61:]
    assert offsets(raw_batch(payload, 2) + AFTER) == [50, 51]


def test_messages_of_old_formats(caplog: pytest.LogCaptureFixture) -> None:
    sound = wrapper(1, Codec.GZIP, message_set(1, [0, 1]), offset=1)
    broken = wrapper(1, Codec.GZIP, b"not a set", offset=2)
    assert offsets(sound + broken + AFTER) == [0, 1, 50, 51]
    assert "batch at offset 2" in caplog.text


def test_bytes_that_cannot_begin_a_batch_end_it() -> None:
    broken = patched(AFTER, batch_length=0)
    with pytest.raises(ApiError):
        offsets(BEFORE + broken)
