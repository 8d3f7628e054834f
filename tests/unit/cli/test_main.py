"""The process, and what nobody expected of it. What a start imports: test_starts_live."""

from __future__ import annotations

import sys

import pytest

from kafkapy.cli.main import surprise


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
