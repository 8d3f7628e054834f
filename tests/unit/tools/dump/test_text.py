"""Lines that no recorded file has."""

from __future__ import annotations

import pytest

from kafkapy.record.batch_header import read_header
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.tools.dump.items import DumpedFile
from kafkapy.tools.dump.printers import Batch, Depth
from kafkapy.tools.dump.text import TextPrinter
from tests.harness.storage.legacy_messages import message_set, wrapper


def printed(data: bytes, *, is_valid: bool = True) -> list[str]:
    written: list[bytes] = []
    printer = TextPrinter(written.append, Depth(records=True), lambda line: None)
    batch = Batch(40, read_header(data), memoryview(data), is_valid)
    printer.batch(batch)
    printer.records(batch)
    return b"".join(written).decode().splitlines()


def test_a_batch_that_compaction_emptied() -> None:
    data = bytearray(build_batch([RecordData(b"k", b"v", 5, [])], base_offset=9)[:61])
    data[8:12] = (49).to_bytes(4, "big")
    data[57:61] = bytes(4)
    (line,) = printed(bytes(data))
    assert line.startswith("baseOffset: 9 lastOffset: 9 count: 0 ")


def test_a_batch_with_a_delete_horizon() -> None:
    data = bytearray(build_batch([RecordData(b"k", None, 5, [])]))
    data[22] |= 0x40
    line = printed(bytes(data), is_valid=False)[0]
    assert " deleteHorizonMs: OptionalLong[5] position: 40 CreateTime: 5 " in line
    assert line.endswith(" isvalid: false")


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_damaged_message_of_an_old_format_does_not_look_valid(codec: Codec) -> None:
    inner = message_set(1, [0])
    data = inner if codec is Codec.NONE else wrapper(1, codec, inner)
    _, record = printed(data, is_valid=False)
    # Each message in a compressed one has its own CRC.
    assert f" isValid: {'false' if codec is Codec.NONE else 'true'} crc: " in record


def test_names_of_files_may_be_any_bytes() -> None:
    written: list[bytes] = []
    printer = TextPrinter(written.append, Depth(), lambda line: None)
    printer.item(DumpedFile("a\udcff.log"))
    assert written == [b"Dumping a\xff.log\n"]
