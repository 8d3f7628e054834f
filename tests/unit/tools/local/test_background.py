"""Launched processes end if the start fails; modules are not imported from the directory."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from kafkapy import __version__
from kafkapy.tools.local.background import LaunchedServer, end_on_failure, launch
from tests.harness.processes.idle_servers import IdleServers


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_start_that_fails_leaves_nobody(tmp_path: Path, failure: type[BaseException]) -> None:
    with IdleServers() as servers:
        before, first, second = (servers.start() for _ in range(3))

        def fail() -> None:
            with end_on_failure() as started:
                started += [LaunchedServer(child, tmp_path / "out", 0) for child in (first, second)]
                raise failure

        with pytest.raises(failure):
            fail()
        assert [first.poll(), second.poll()] == [-signal.SIGTERM] * 2
        assert before.poll() is None


@pytest.mark.parametrize("second", [KeyboardInterrupt, SystemExit])
def test_a_second_signal_leaves_nobody_either(tmp_path: Path, second: type[BaseException]) -> None:
    class Interrupted:
        """A process for whose end nobody can wait in peace."""

        killed = False

        def terminate(self) -> None:
            pass

        def wait(self, limit_s: float | None = None) -> None:
            if not self.killed:
                raise second

        def kill(self) -> None:
            self.killed = True

    children: list[Any] = [Interrupted(), Interrupted()]

    def fail() -> None:
        with end_on_failure() as started:
            started += [LaunchedServer(child, tmp_path / "out", 0) for child in children]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [child.killed for child in children] == [True, True]


def test_a_start_that_succeeds_leaves_all(tmp_path: Path) -> None:
    with IdleServers() as servers:
        child = servers.start()
        with end_on_failure() as started:
            started.append(LaunchedServer(child, tmp_path / "out", 0))
        assert child.poll() is None


def test_an_old_output_is_not_read_again(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with output.open("wb") as file:
        file.truncate(1 << 42)
        file.seek(0, 2)
        file.write(b"now")
    child = LaunchedServer(None, output, 1 << 42)  # type: ignore[arg-type]
    assert child.output_text() == b"now"
    output.unlink()
    assert (child.output_text(), child.last_lines()) == (b"", "")


def test_modules_of_the_current_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kafkapy").mkdir()
    for name in ("signal.py", "kafkapy/__init__.py"):
        (tmp_path / name).write_text("raise SystemExit('not this one')\n")
    monkeypatch.chdir(tmp_path)
    output = tmp_path / "logs" / "out"
    assert launch(["--version"], output).process.wait() == 0
    again = launch(["--version"], output)
    assert again.process.wait() == 0
    assert again.output_text() == f"{__version__}\n".encode()
    assert again.last_lines() == f"\n  {__version__}"
