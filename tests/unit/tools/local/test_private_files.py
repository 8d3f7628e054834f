"""Nobody but the owner reads what may hold a password, nor did for a moment."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kafkapy.tools.local.cluster_layout import create
from kafkapy.tools.local.private_files import write_privately


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        write_privately(path, b"password")
    finally:
        os.umask(before)
    assert (path.read_bytes(), mode(path)) == (b"password", 0o600)
    assert os.listdir(tmp_path) == ["a"]


def test_a_cluster_keeps_its_overrides_to_itself(tmp_path: Path) -> None:
    create(tmp_path, 1, 0, {"sasl.jaas.config": 'x required password="secret";'}).save()
    [file] = tmp_path.iterdir()
    assert mode(file) == 0o600
