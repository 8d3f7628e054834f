"""Stdout that knows whether it failed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from kafkapy.cli.framework.output_file import has_failed, wrap_output_file


def test_what_is_written_arrives(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="latin-1", newline="") as plain:
        plain.write("before\n")
        stream = wrap_output_file(plain)
        stream.write("grün\n")
        stream.flush()
        assert not has_failed(stream)
    assert (tmp_path / "out").read_bytes() == b"before\ngr\xfcn\n"


def test_a_stream_that_is_no_file_stays_as_it_is() -> None:
    stream = io.StringIO()
    assert wrap_output_file(stream) is stream
    assert not has_failed(stream)


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_failure_is_remembered(size: int) -> None:
    with open("/dev/full", "w", encoding="utf-8") as plain:
        stream = wrap_output_file(plain)
        with pytest.raises(OSError, match="No space left"):
            print("x" * size, file=stream, flush=True)
        assert has_failed(stream)
        with suppress(OSError):
            stream.close()  # which writes once more


def test_a_pipe_that_does_not_block_is_waited_for() -> None:
    """Whoever shares the pipe may set that, as Node does."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    arrived = bytearray()

    def read() -> None:
        with open(reader, "rb") as end:
            arrived.extend(end.read())

    thread = threading.Thread(target=read)
    with open(writer, "w", encoding="utf-8") as plain:
        stream = wrap_output_file(plain)
        thread.start()
        print("x" * 1_000_000, file=stream, flush=True)
    thread.join()
    assert len(arrived) == 1_000_001


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["topics", "--help"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_no_fault_of_kafkapy(words: list[str], unbuffered: str) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "kafkapy", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
    said = "Unable to write to standard out: No space left on device\n"
    assert (ended.stderr, ended.returncode) == (said, 1)
