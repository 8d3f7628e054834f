"""`dump-log-segments` over recorded files of Apache Kafka, and over broken ones."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from kafkapy.record.batch_header import HEADER_SIZE, read_header
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.varint import read_varint
from tests.conformance import dump_twin
from tests.harness.scripted.cli import Outcome, kafkapy

DATA = Path(__file__).parents[3] / "data" / "dump_log"
LOGS = DATA / "logs"
NAME = "00000000000000000000"


def dump(*words: str) -> Outcome:
    return kafkapy("dump-log-segments", *words)


@pytest.fixture
def in_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LOGS)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A copy of a segment with its indexes, to be broken."""
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(LOGS / "transactions-0" / (NAME + suffix), tmp_path)
    return tmp_path / f"{NAME}.log"


@pytest.mark.usefixtures("in_logs")
@pytest.mark.parametrize("case", dump_twin.cases(LOGS), ids=lambda case: case.name)
def test_the_text_is_that_of_apache_kafka(case: dump_twin.Case) -> None:
    outcome = dump(*case.words)
    assert outcome.stdout.encode() == (DATA / f"{case.name}.out").read_bytes()
    found = sorted(outcome.stderr.replace(str(LOGS), "@").splitlines())
    expected = DATA / f"{case.name}.err"
    assert found == (expected.read_text().splitlines() if expected.exists() else [])
    assert outcome.status == 0


def test_a_batch_that_is_cut_off_is_an_invalid_tail(segment: Path) -> None:
    whole = dump("--files", str(segment)).stdout
    size = segment.stat().st_size
    segment.write_bytes(segment.read_bytes()[:-1])
    outcome = dump("--files", str(segment))
    *lines, tail = outcome.stdout.splitlines()
    assert lines == whole.splitlines()[:-1]
    last_batch = size - int(whole.splitlines()[-1].split("position: ")[1].split()[0])
    assert tail == f"Found {last_batch - 1} invalid bytes at the end of {NAME}.log"
    assert outcome.status == 0
    assert dump("--files", str(segment), "--strict").status == 1
    assert "invalid bytes" not in dump("--files", str(segment), "--max-bytes", "99999").stdout


def test_bytes_that_are_no_batch_end_the_file_and_not_the_run(segment: Path) -> None:
    good = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(bytes(100))
    outcome = dump("--files", f"{segment},{segment.with_suffix('.index')}")
    assert outcome.stderr.startswith(
        f"{segment}: broken at position {good} of {good + 100}, the last good byte is {good - 1}: "
    )
    assert outcome.stdout.splitlines()[-1].startswith("offset: ")  # of the index, which came after
    assert outcome.status == 1


def test_a_flipped_bit_makes_the_batch_invalid(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    data[120] ^= 1
    segment.write_bytes(data)
    outcome = dump("--files", str(segment))
    assert [line.endswith("isvalid: true") for line in outcome.stdout.splitlines()[2:5]] == [
        False,
        True,
        True,
    ]
    assert outcome.status == 0
    assert dump("--files", str(segment), "--strict").status == 1


def test_a_malformed_record_ends_the_records_of_its_batch_and_not_the_file(segment: Path) -> None:
    whole = dump("--files", str(segment), "--print-data-log").stdout
    data = bytearray(segment.read_bytes())
    in_batch = read_header(data).record_count
    length, records = read_varint(data, HEADER_SIZE)
    data[records + length] = 2  # the second record's length
    segment.write_bytes(data)
    outcome = dump("--files", str(segment), "--print-data-log")
    shown = whole.count("| offset: ")
    assert outcome.stdout.count("| offset: ") == shown - in_batch + 1 > 1
    assert outcome.stdout.splitlines()[-1] == whole.splitlines()[-1]
    assert "the batch at position 0 cannot be read whole" in outcome.stderr
    assert "Record 1 of the batch at offset 0 is malformed" in outcome.stderr
    assert outcome.status == 1


def test_a_codec_that_there_is_not_ends_no_file(segment: Path) -> None:
    batches = len(dump("--files", str(segment)).stdout.splitlines())
    data = bytearray(segment.read_bytes())
    data[22] |= 7
    segment.write_bytes(data)
    outcome = dump("--files", str(segment))
    assert len(outcome.stdout.splitlines()) == batches - 1
    assert "Unknown compression codec 7" in outcome.stderr
    assert outcome.status == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nope.log", "nope.log: its name does not begin with a base offset"),
        ("7.log", "7.log: No such file or directory"),
        ("7.index", "No such file or directory"),
        (".", "Ignoring unknown file"),
        ("notes", "Ignoring unknown file"),
    ],
)
def test_files_that_are_not_there_or_not_ours(tmp_path: Path, name: str, said: str) -> None:
    outcome = dump("--files", str(tmp_path / name))
    assert said in outcome.stderr
    assert outcome.status == (0 if said.startswith("Ignoring") else 1)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "7.log").mkdir()  # root may read anything but a directory
    outcome = dump("--files", str(tmp_path / "7.log"))
    assert outcome.stderr == f"{tmp_path}/7.log: Is a directory\n"
    assert outcome.status == 1


def test_files_are_opened_for_reading_only(segment: Path) -> None:
    segment.chmod(0o400)
    before = segment.stat()
    assert dump("--files", str(segment), "--print-data-log").status == 0
    after = segment.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_checkpoints_and_partition_metadata(tmp_path: Path) -> None:
    def file(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    files = [
        file("replication-offset-checkpoint", "0\n2\norders 0 5\na-b 11 7\n"),
        file("leader-epoch-checkpoint", "0\n1\n3 40\n"),
        file("partition.metadata", "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"),
    ]
    assert dump("--files", ",".join(files)).stdout.splitlines() == [
        f"Dumping {files[0]}",
        "topic: orders partition: 0 offset: 5",
        "topic: a-b partition: 11 offset: 7",
        f"Dumping {files[1]}",
        "epoch: 3 startOffset: 40",
        f"Dumping {files[2]}",
        "topicId: AAECAwQFBgcICQoLDA0ODw",
    ]
    broken = dump("--files", file("leader-epoch-checkpoint", "0\n1\nx\n"))
    assert "malformed line 'x'" in broken.stderr
    assert broken.status == 1


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_key_of_another_type_does_not_hide_later_batches_of_a_good_log(
    tmp_path: Path, output: str
) -> None:
    """It was reported as a broken file, without one good byte."""
    path = tmp_path / "0.log"
    keys = [b"\0\0\0\0\0\0\0\7", b"short", b"\0\0\0\0\0\0\0\x08"]
    data = [bytearray(build_batch([RecordData(key, b"v", 5, [])])) for key in keys]
    for offset, batch in enumerate(data):
        struct.pack_into(">q", batch, 0, offset)
    path.write_bytes(b"".join(data))
    outcome = dump(
        *("--files", str(path), "--key-decoder-class", "LongDecoder", "--output", output)
    )
    where = f"{path}: the batch at position {len(data[0])}"
    reason = "LongDecoder needs 8 bytes, there are 5"
    assert outcome.stderr == f"{where} cannot be read whole: {reason}\n"
    shown = " key: 8 payload: v\n" if output == "text" else '"key":"8","value":"v"}\n'
    assert outcome.stdout.endswith(shown)
    assert outcome.status == 1


@pytest.mark.parametrize(
    "name", ["replication-offset-checkpoint", "leader-epoch-checkpoint", "partition.metadata"]
)
def test_a_checkpoint_that_does_not_exist_is_not_shown_as_empty(tmp_path: Path, name: str) -> None:
    outcome = dump("--files", str(tmp_path / name))
    assert outcome.stderr == f"{tmp_path / name}: No such file or directory\n"
    assert outcome.status == 1


def test_a_snapshot_that_kafka_would_not_load_does_not_fail(tmp_path: Path) -> None:
    path = tmp_path / "5.snapshot"
    path.write_bytes(struct.pack(">hIi", 2, 0, 0))
    outcome = dump("--files", str(path))
    assert outcome.stderr == "Snapshot contained an unknown file version 2\n"
    assert outcome.status == 0
    assert dump("--files", str(path), "--strict").status == 1


def test_gaps_count_as_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LOGS)
    compacted = sorted(str(path) for path in Path("compacted-0").glob("*.log"))
    words = ("--deep-iteration", "--strict", "--files", ",".join(compacted))
    assert dump(*words).status == 1


@pytest.mark.parametrize("output", ["text", "json"])
def test_offsets_at_the_end_of_all_numbers(segment: Path, output: str) -> None:
    data = bytearray(segment.read_bytes())
    struct.pack_into(">q", data, 0, 2**63 - 1)
    segment.write_bytes(data)
    outcome = dump("--deep-iteration", "--output", output, "--files", f"{segment},{segment}")
    assert outcome.status == 0
    assert "-9223372036854775807" in outcome.stdout + outcome.stderr
