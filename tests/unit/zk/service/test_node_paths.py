"""Paths that ZooKeeper takes, and those that it refuses."""

from __future__ import annotations

import pytest

from kafkapy.zk.service.node_paths import check_path, parent_to_change
from kafkapy.zk.service.refusals import Refused


@pytest.mark.parametrize("path", ["/", "/a", "/a/b.c/..d/...", "/ü/日本", "/a b", "/\ud7ff\uf900"])
def test_good_paths(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    "path",
    [
        *("", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/../a", "/a\0", "/\x1f", "/\x7f"),
        *("/\x9f", "/\ud800", "/\ue000", "/\uf8ff", "/\ufff0", "/\ufffd", "/\U0001f600"),
    ],
)
def test_bad_paths(path: str) -> None:
    with pytest.raises(Refused, match="BADARGUMENTS"):
        check_path(path)


def test_parents() -> None:
    assert [parent_to_change(path) for path in ("/a", "/a/b", "/a/", "/")] == ["/", "/a", "/a", "/"]
    for path in ("", "a", "/a\0/b"):
        with pytest.raises(Refused):
            parent_to_change(path)
