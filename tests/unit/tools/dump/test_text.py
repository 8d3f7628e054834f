"""Lines that no recorded file has."""

from __future__ import annotations

from kafkapy.record.batch_header import read_header
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.tools.dump.items import DumpedFile
from kafkapy.tools.dump.printers import Batch, Depth
from kafkapy.tools.dump.text import TextPrinter


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


def test_names_of_files_may_be_any_bytes() -> None:
    written: list[bytes] = []
    printer = TextPrinter(written.append, Depth(), lambda line: None)
    printer.item(DumpedFile("a\udcff.log"))
    assert written == [b"Dumping a\xff.log\n"]
