"""The pid file is held while the broker runs, by one broker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkapy.server.system import PidFile
from kafkapy.storage.filesystem import OsFileSystem


def test_the_file_has_the_pid_until_it_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "kafkapy.pid"
    file = PidFile(OsFileSystem())
    file.hold(str(path))
    assert path.read_text() == f"{os.getpid()}\n"
    file.remove()
    assert not path.exists()
    file.close()


def test_a_file_that_cannot_be_written_is_only_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = PidFile(OsFileSystem())
    file.hold(str(tmp_path / "nowhere" / "kafkapy.pid"))
    file.remove()
    file.close()
    assert "Cannot write" in caplog.text
