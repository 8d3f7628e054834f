"""Servers are found by the pid files that they hold locked, and by nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.tools.local import pid_files
from tests.harness.processes.idle_servers import IdleServers

NAME = "test-of-kafkapy.pid"


@pytest.fixture
def servers() -> Iterator[IdleServers]:
    with IdleServers() as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """In a directory that has all that ever misled us."""
    directory = tmp_path / "kafkapy" / "späte Brötchen" / "server start"
    directory.mkdir(parents=True)
    return directory / NAME


def test_a_server_is_found_by_its_file_and_by_its_pid(file: Path, servers: IdleServers) -> None:
    child = servers.start(file)
    assert file.read_text() == f"{child.pid}\n"
    assert pid_files.holder(file) == child.pid
    assert pid_files.holds(child.pid, NAME)
    assert child.pid in pid_files.holders(NAME)
    assert not pid_files.holds(child.pid, "other.pid")


def test_one_whose_directory_was_removed_is_found_still(file: Path, servers: IdleServers) -> None:
    child = servers.start(file)
    file.unlink()
    assert pid_files.holder(file) is None
    assert child.pid in pid_files.holders(NAME)


def test_a_file_that_a_killed_server_left_is_nobodys(file: Path, servers: IdleServers) -> None:
    child = servers.start(file)
    child.kill()
    child.wait()
    assert file.read_text() == f"{child.pid}\n"
    assert pid_files.holder(file) is None
    assert not pid_files.holds(child.pid, NAME)


def test_a_pid_that_went_to_another_process_is_not_believed(
    file: Path, servers: IdleServers
) -> None:
    other = servers.start(None)
    file.write_text(f"{other.pid}\n")
    assert pid_files.holder(file) is None
    assert not pid_files.holds(other.pid, NAME)


def test_words_of_a_command_line_make_no_server(file: Path, servers: IdleServers) -> None:
    child = servers.start(None)
    named = servers.start(file.with_name("x.pid"), "kafkapy", "server", "start", str(file))
    assert pid_files.holder(file) is None
    assert not {child.pid, named.pid} & set(pid_files.holders(NAME))


def test_a_lock_of_another_program_behind_a_link_is_not_followed(
    file: Path, servers: IdleServers
) -> None:
    servers.start(file.with_name("profile.lock"))
    file.symlink_to("profile.lock")
    assert pid_files.holder(file) is None


def test_a_file_of_another_user_is_not_believed(
    file: Path, servers: IdleServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = servers.start(file)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert pid_files.holder(file) is None
    assert not pid_files.holds(child.pid, NAME)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.write_text("x")])
def test_what_is_no_pid_file_is_nobodys(file: Path, make: object) -> None:
    make(file)  # type: ignore[operator]
    assert pid_files.holder(file) is None


def test_the_lock_has_one_holder_and_survives_exec(file: Path, servers: IdleServers) -> None:
    program = (
        "import os, sys; from pathlib import Path; from kafkapy.tools.local import pid_files\n"
        "os.set_inheritable(pid_files.lock(Path(sys.argv[1])), True)\n"
        "os.execvp('sh', ['sh', '-c', 'echo; read line'])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.readline()
        assert pid_files.holder(file) == child.pid
        assert pid_files.lock(file) is None
        assert file.read_text() == f"{child.pid}\n"
        child.stdin.close()
    held = pid_files.lock(file)
    assert held is not None
    assert file.read_text() == f"{os.getpid()}\n"
    os.close(held)
