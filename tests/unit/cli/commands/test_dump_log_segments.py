"""`kafkapy dump-log-segments`: its command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.record.builder import RecordData, build_batch
from tests.harness.scripted.cli import kafkapy


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "0.log"
    path.write_bytes(build_batch([RecordData(b"\0\0\0\7", b"v", 5, [])]))
    return str(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], 'Missing required argument "[files]"'),
        (
            ["--files", "0.log", "--cluster-metadata-decoder"],
            "--cluster-metadata-decoder is not served",
        ),
        (
            ["--files", "0.log", "--remote-log-metadata-decoder"],
            "--remote-log-metadata-decoder is not",
        ),
        (["--files", "0.log", "--max-bytes", "-1"], "Invalid size: -1"),
        (["--files", "0.log", "--max-bytes", "x"], "Cannot parse argument 'x' of option max-bytes"),
        (["--files", "0.log", "--key-decoder-class", "a.B"], "The decoder class a.B is not known"),
    ],
)
def test_refusals(words: list[str], said: str) -> None:
    outcome = kafkapy("dump-log-segments", "--deep-iteration", *words)
    assert outcome.stderr.startswith(said)
    assert (outcome.stdout, outcome.status) == ("", 1)


@pytest.mark.parametrize("option", ["--verify", "--files"])
@pytest.mark.parametrize("empty", ["", ","])
def test_an_empty_variable_is_not_verified_as_faultless(option: str, empty: str) -> None:
    outcome = kafkapy("dump-log-segments", option, empty, "--strict")
    assert outcome.stderr.startswith(f"{option} names no path\n")
    assert (outcome.stdout, outcome.status) == ("", 1)


@pytest.mark.parametrize("name", ["dump-log-segments", "dump-log"])
def test_both_names(name: str, log: str) -> None:
    outcome = kafkapy(name, "--files", log)
    assert outcome.stdout.startswith(f"Dumping {log}\nLog starting offset: 0\nbaseOffset: 0 ")
    help_page = kafkapy(name, "-h")
    assert "--print-data-log" in help_page.stdout
    assert help_page.status == 0


def test_any_decoder_shows_contents(log: str) -> None:
    integer = kafkapy("dump-log", "--files", log, "--key-decoder-class", "IntegerDecoder")
    assert integer.stdout.endswith(" key: 7 payload: v\n")
    alone = kafkapy("dump-log", "--files", log, "--value-decoder-class")
    assert alone.stdout.endswith(" payload: v\n")
    first = kafkapy("dump-log", "--offsets-decoder", "--files", log)
    assert "Error at offset 0, skipping." in first.stdout


def test_the_offsets_decoder_goes_before_the_others(log: str) -> None:
    both = ("--transaction-log-decoder", "--offsets-decoder", "--key-decoder-class", "a.B")
    assert kafkapy("dump-log", "--files", log, *both).status == 0


def test_a_terminal_gets_the_text(log: str) -> None:
    assert kafkapy("dump-log", "--files", log, terminal=True).stdout.startswith("Dumping ")
