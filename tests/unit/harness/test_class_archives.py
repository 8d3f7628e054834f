"""An archive of classes is made once, and anew when Java or the jars have changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.processes import apache_kafka, class_archives


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = tmp_path / "jars"
    found.mkdir()
    return found


def write(directory: Path, archive: Path) -> None:
    archive.write_text("classes")


def fail(directory: Path, archive: Path) -> None:
    raise RuntimeError("a JVM that did not start")


def test_made_once_and_the_old_one_of_the_same_jars_goes(jars: Path) -> None:
    other, first = apache_kafka.archive_of("other", jars), apache_kafka.archive_of("some", jars)
    for archive in (other, first):
        class_archives.ensure(archive, write)
    class_archives.ensure(first, lambda *_: pytest.fail("it was there"))
    os.utime(jars, (1, 1))
    second = apache_kafka.archive_of("some", jars)
    assert second != first
    class_archives.ensure(second, write)
    assert second.exists()
    assert other.exists()
    assert not first.exists()


def test_without_one_a_jvm_is_told_nothing(jars: Path) -> None:
    archive = apache_kafka.archive_of("some", jars)
    class_archives.ensure(archive, fail)
    assert apache_kafka.sharing(archive) == []
    class_archives.ensure(archive, write)
    assert apache_kafka.sharing(archive)[0] == f"-XX:SharedArchiveFile={archive}"
