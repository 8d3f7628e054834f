"""A batch, or a message of an old format, held against its CRC wherever it lies."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import read_header
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.storage.legacy_messages import message

BATCH = build_batch([RecordData(b"k", b"v", 5)])


def test_validate_crc_at_a_position() -> None:
    header = read_header(BATCH)
    validate_crc(b"..." + BATCH + b"...", 3, header)
    legacy = message(1, 5, b"k", b"v")
    validate_crc(b"." + legacy, 1, read_header(legacy))
    for buf, position, of in (
        (BATCH[:-1] + b"?", 0, header),
        (BATCH[:-1], 0, header),
        (legacy[:-1] + b"?", 0, read_header(legacy)),
        (legacy[:-1], 0, read_header(legacy)),
    ):
        with pytest.raises(ApiError) as caught:
            validate_crc(buf, position, of)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
