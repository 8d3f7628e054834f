"""The process, and what nobody expected of it. What a start imports: test_starts_live."""

from __future__ import annotations

import io
import json
import sys

import pytest

from kafkapy.cli.main import read_whatever_comes, surprise, write_whatever_comes


def test_what_nobody_expected_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["kafkapy", "topics"])
    surprise(ValueError, ValueError("odd"), None)
    assert capsys.readouterr().err.splitlines() == [
        "kafkapy: ValueError: odd",
        "This is a fault of kafkapy; --debug shows where it comes from.",
    ]
    monkeypatch.setattr(sys, "argv", ["kafkapy", "topics", "--debug"])
    surprise(ValueError, ValueError("odd"), None)
    assert "ValueError: odd" in capsys.readouterr().err


def test_a_locale_without_the_letters_of_a_name_gets_escapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also in JSON, which reads them back."""
    raw, name = io.BytesIO(), "grün-日本-\U0001f600"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "latin-1"))
    write_whatever_comes()
    sys.stdout.write(f'"{name}"')
    sys.stdout.flush()
    assert raw.getvalue() == b'"gr\xfcn-\\u65e5\\u672c-\\ud83d\\ude00"'
    assert json.loads(raw.getvalue().decode("latin-1")) == name


def test_stdin_goes_on_behind_bytes_that_are_no_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ls /\xff\nls /\n"), "utf-8"))
    read_whatever_comes()
    assert sys.stdin.readlines() == ["ls /\udcff\n", "ls /\n"]
