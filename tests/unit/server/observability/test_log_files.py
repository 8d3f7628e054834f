"""Log files roll by the hour, under the names that log4j gives them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.server.observability.log_files import HourlyFileHandler

NOON = 1_729_512_000.0  # a full hour in every time zone of full hours


@pytest.fixture(autouse=True)
def universal_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.localtime", time.gmtime)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def opened(file: Path) -> Iterator[list[HourlyFileHandler]]:
    handlers: list[HourlyFileHandler] = []
    yield handlers
    for handler in handlers:
        handler.close()


def say(handler: HourlyFileHandler, what: str, at: float) -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, what, (), None)
    record.created = at
    handler.handle(record)


def at_noon(file: Path) -> HourlyFileHandler:
    """A handler of a file that was last written at noon."""
    file.write_text("before\n")
    os.utime(file, (NOON, NOON))
    return HourlyFileHandler(file)


def test_the_first_line_of_an_hour_puts_the_last_hour_aside(
    file: Path, opened: list[HourlyFileHandler]
) -> None:
    handler = at_noon(file)
    opened.append(handler)
    for what, seconds in {"late": 3599.9, "next": 3600, "later": 4000, "evening": 25_200}.items():
        say(handler, what, NOON + seconds)
    assert {path.name: path.read_text() for path in file.parent.iterdir()} == {
        "server.log": "evening\n",
        "server.log.2024-10-21-12": "before\nlate\n",
        "server.log.2024-10-21-13": "next\nlater\n",
    }


def test_a_clock_that_goes_back_rolls_nothing(file: Path, opened: list[HourlyFileHandler]) -> None:
    handler = at_noon(file)
    opened.append(handler)
    say(handler, "earlier", NOON - 7200)
    assert file.read_text() == "before\nearlier\n"


def test_a_file_that_cannot_be_put_aside_costs_no_line_and_one_complaint(
    file: Path, opened: list[HourlyFileHandler], capsys: pytest.CaptureFixture[str]
) -> None:
    handler = at_noon(file)
    opened.append(handler)
    (file.parent / "server.log.2024-10-21-12" / "in the way").mkdir(parents=True)
    for what in ("one", "two"):
        say(handler, what, NOON + 3600)
    assert file.read_text() == "before\none\ntwo\n"
    [complaint] = capsys.readouterr().err.splitlines()
    assert complaint.startswith(f"Cannot write {file}: ")
