"""Fixtures for tests that need a broker process; each test folder adds its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import unchecked
from tests.support.broker_process import BrokerProcess

BrokerFactory = Callable[..., BrokerProcess]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One running broker for all tests of a module: give your topics names of their own."""
    log_dir = tmp_path_factory.mktemp("broker") / "logs"
    with BrokerProcess(log_dir) as process:
        yield process


@pytest.fixture
def broker_factory(tmp_path: Path) -> Iterator[BrokerFactory]:
    """`broker_factory(overrides=None, log_dir=None, start=True)`: brokers of one test."""
    processes: list[BrokerProcess] = []

    def make(
        overrides: dict[str, str] | None = None, log_dir: Path | None = None, start: bool = True
    ) -> BrokerProcess:
        directory = log_dir or tmp_path / f"broker-{len(processes)}"
        process = BrokerProcess(directory, overrides)
        processes.append(process)
        return process.start() if start else process

    yield make
    for process in processes:
        if process.running:
            process.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what this machine could not check, above pytest's closing line."""
    for line in unchecked.lines():
        terminalreporter.write_line(line)
