"""The process, and what nobody expected of it. What a start imports: test_starts_live."""

from __future__ import annotations

import io
import json
import os
import sys
from types import ModuleType

import pytest

from kafkapy.cli.main import escape_stdout, exception_hook, exit_process, tolerate_stdin_bytes


def test_what_nobody_expected_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["kafkapy", "topics"])
    exception_hook(ValueError, ValueError("odd"), None)
    assert capsys.readouterr().err.splitlines() == [
        "kafkapy: ValueError: odd",
        "This is a bug in kafkapy; --debug shows the traceback.",
    ]
    monkeypatch.setattr(sys, "argv", ["kafkapy", "topics", "--debug"])
    exception_hook(ValueError, ValueError("odd"), None)
    assert "ValueError: odd" in capsys.readouterr().err


def test_a_locale_without_the_letters_of_a_name_gets_escapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also in JSON, which reads them back."""
    raw, name = io.BytesIO(), "grün-日本-\U0001f600"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "latin-1"))
    escape_stdout()
    sys.stdout.write(f'"{name}"')
    sys.stdout.flush()
    assert raw.getvalue() == b'"gr\xfcn-\\u65e5\\u672c-\\ud83d\\ude00"'
    assert json.loads(raw.getvalue().decode("latin-1")) == name


def test_a_process_with_threads_of_librdkafka_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 refused logins one ended by SIGSEGV."""
    left: list[int] = []
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=False)
    out.write("last words")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(os, "_exit", left.append)
    monkeypatch.setitem(sys.modules, "confluent_kafka", ModuleType("confluent_kafka"))
    with pytest.raises(SystemExit):  # what is called ends the process
        exit_process(3)
    assert left == [3]
    assert isinstance(out.buffer, io.BytesIO)
    assert out.buffer.getvalue() == b"last words"


def test_other_processes_end_as_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "confluent_kafka", raising=False)
    with pytest.raises(SystemExit) as ended:
        exit_process(3)
    assert ended.value.code == 3


def test_stdin_goes_on_behind_bytes_that_are_no_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ls /\xff\nls /\n"), "utf-8"))
    tolerate_stdin_bytes()
    assert sys.stdin.readlines() == ["ls /\udcff\n", "ls /\n"]
