"""Znodes that do not belong in their folder."""

from __future__ import annotations

import pytest

from kafkapy.zk.stores.stray_children import StrayChildren


def test_each_is_left_out_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    stray = StrayChildren("/folder", "number", str.isdecimal)
    assert [stray.valid_names(["2", "x", "1"]) for _ in range(2)] == [["2", "1"]] * 2
    assert stray.valid_names(["x", "y"]) == []
    assert [record.message for record in caplog.records] == [
        "/folder has the child 'x', which is no number",
        "/folder has the child 'y', which is no number",
    ]
