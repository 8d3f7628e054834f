"""The merge: recorded output of Kafka's class, rotated and compressed files, bad input."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.state_change_lines import LineFilter
from kafkapy.tools.state_change_log_merger import files_matching, merge
from tests.conformance import merger_twin
from tests.harness.scripted.cli import kafkapy

DATA = Path(__file__).parents[2] / "data" / "state_change_logs"


@pytest.mark.parametrize("case", merger_twin.cases(), ids=lambda case: case.name)
def test_the_lines_are_those_of_kafkas_class(
    case: merger_twin.Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(DATA / "logs")
    outcome = kafkapy("state-change-log-merger", *case.words)
    assert outcome.stdout.encode() == (DATA / f"{case.name}.out").read_bytes()
    assert outcome.status == 0


def line(second: int, text: str) -> bytes:
    return f"[2024-01-31 12:00:{second:02},000] INFO [Broker id=1] Leader {text} starts".encode()


def merged(*paths: Path) -> list[bytes]:
    return [row[1] for row in merge([str(path) for path in paths], LineFilter())]


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_compressed_files(tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]) -> None:
    plain, packed = tmp_path / "plain", tmp_path / f"rotated{suffix}"
    plain.write_bytes(line(2, "b-0") + b"\r\n" + line(4, "b-0"))
    packed.write_bytes(compress(line(1, "a-0") + b"\n" + line(3, "a-0") + b"\n"))
    expected = [line(1, "a-0"), line(2, "b-0"), line(3, "a-0"), line(4, "b-0")]
    assert merged(plain, packed) == expected
    packed.write_bytes(packed.read_bytes()[:-10])
    with pytest.raises(ConfigError, match=f"rotated{suffix}: "):
        merged(plain, packed)


def test_a_log_in_a_format_that_is_not_read_is_refused(tmp_path: Path) -> None:
    """Its lines were silently missing in the output."""
    packed = tmp_path / "rotated.zst"
    packed.write_bytes(bytes(cramjam.zstd.compress(line(1, "a-0"))))
    with pytest.raises(ConfigError) as caught:
        merged(packed)
    assert str(caught.value) == (
        f"{packed} is compressed with zstd, which is not supported: give <(zstd -dc {packed})"
    )


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_log_that_comes_through_a_pipe_loses_no_line(
    compress: Callable[[bytes], bytes],
) -> None:
    lines = [line(second, "a-0") for second in range(3)]
    read_end, write_end = os.pipe()
    with os.fdopen(read_end), os.fdopen(write_end, "wb") as writer:
        writer.write(compress(b"\n".join(lines)))
        writer.close()
        assert merged(Path(f"/dev/fd/{read_end}")) == lines


def test_damage_in_a_compressed_file(tmp_path: Path) -> None:
    packed = tmp_path / "rotated.gz"
    # A stored block, and then one of a type that does not exist.
    lines = b"".join(line(1, f"a-{number}") + b"\n" for number in range(400))
    size = len(lines).to_bytes(2, "little") + (len(lines) ^ 0xFFFF).to_bytes(2, "little")
    packed.write_bytes(b"\x1f\x8b\x08" + bytes(7) + b"\0" + size + lines + b"\x07")
    outcome = kafkapy("state-change-log-merger", "--logs", str(packed))
    assert lines.startswith(outcome.stdout.encode())
    assert outcome.stdout.count("\n") > 300
    assert outcome.stderr.startswith(f"{packed}: Error -3 while decompressing data")
    assert outcome.status == 1


def test_a_file_that_is_out_of_order_keeps_its_order(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(line(5, "a-0") + b"\n" + line(1, "a-0") + b"\n")
    (tmp_path / "b").write_bytes(line(3, "b-0") + b"\n")
    assert merged(tmp_path / "a", tmp_path / "b") == [
        line(3, "b-0"),
        line(5, "a-0"),
        line(1, "a-0"),
    ]


def test_files_by_regular_expression(tmp_path: Path) -> None:
    for name in ("state-change.log", "state-change.log.2024-01-31-11", "old.bak", "server.log"):
        (tmp_path / name).touch()
    (tmp_path / "state-change.d").mkdir()
    found = files_matching(f"{tmp_path}/state-change")
    assert found == [f"{tmp_path}/state-change.log", f"{tmp_path}/state-change.log.2024-01-31-11"]
    with pytest.raises(ConfigError, match=r"\*\.log is an invalid regex"):
        files_matching(f"{tmp_path}/*.log")
    with pytest.raises(ConfigError, match="nope: No such file or directory"):
        files_matching(f"{tmp_path}/nope/x")


def test_files_that_cannot_be_read_are_named_first(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(line(1, "a-0"))
    with pytest.raises(ConfigError, match="nope: No such file or directory"):
        next(merge([str(tmp_path / "a"), str(tmp_path / "nope")], LineFilter()))
    with pytest.raises(ConfigError, match="Is a directory"):
        merged(tmp_path)
