"""Fixtures for tests that need a broker process; each test folder adds its own."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import pytest
import uvloop

from tests.harness.plugins import lanes, leaks, limits, unchecked
from tests.harness.plugins.closing import closing
from tests.harness.processes import forked_brokers, zookeeper_server
from tests.harness.processes.broker_process import BrokerProcess

BrokerFactory = Callable[..., BrokerProcess]


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (lanes, leaks, limits):
        config.pluginmanager.register(plugin)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests live as long as the run: no collection of garbage looks at them, which
    would take an eighth of the time now, and 2 s at each full one later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def kept_by_libraries() -> None:
    """Opens what libraries keep open for the whole process, before the first test.

    libuv's pipe for signals, and the helper processes of multiprocessing.
    """
    uvloop.new_event_loop().close()
    resource_tracker.ensure_running()
    forked_brokers.prepare()


@pytest.fixture(autouse=True, scope="session")
def one_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The clusters of this process have trees of their own on one ZooKeeper."""
    with zookeeper_server.sharing(tmp_path_factory.mktemp("zookeeper")):
        yield


@pytest.fixture(autouse=True, scope="module")
def nothing_left() -> Iterator[None]:
    """A module closes what it opens: descriptors, child processes and threads are those of its
    beginning."""
    before = leaks.open_resources()
    with closing():
        yield
    leaks.expect_none_opened_since(before)


@pytest.fixture(autouse=True)
def closed_at_end(request: pytest.FixtureRequest) -> Iterator[None]:
    """Closes after each test what helpers opened for it."""
    with closing():
        yield
    # pytest would keep the last test's arguments until after the look at what its module left:
    # clients of librdkafka are closed when nobody refers to them.
    request.node.funcargs.clear()


@pytest.fixture(scope="module")
def uncollected() -> Iterator[None]:
    """No collection of garbage, which takes longer than the tests where they keep many objects."""
    gc.disable()
    yield
    gc.enable()


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
