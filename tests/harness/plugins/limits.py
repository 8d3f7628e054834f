"""No test can hang: a plugin of pytest with two limits for each.

pytest-timeout (`timeout` in pyproject.toml) fails a test in its own process, so that fixtures still
end its brokers; the report has the stacks of all threads. A wait in native code never handles that
signal, and a teardown may hang as well. At the hard limit, faulthandler, whose timer needs neither
the interpreter nor its lock, writes the stacks and ends the process. pytest-xdist then reports the
test as failed and continues with a new worker, and this plugin ends the processes that the old
worker had started.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import tempfile
from collections.abc import Generator
from typing import Any, Final

import pytest

from dev.verify import leftovers

HARD_LIMIT_S: Final = 600.0
HARD_LIMIT_VARIABLE: Final = "KAFKAPY_TEST_HARD_LIMIT_S"

_stderr = 2


def pytest_configure() -> None:
    """Duplicate stderr: pytest replaces the streams of a test with files of its own."""
    global _stderr
    _stderr = os.dup(2)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, Any, Any]:
    _arm()
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)
def pytest_exception_interact() -> None:
    """Start the timer again for the teardown: pytest has cancelled it."""
    _arm()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo is not None and "from pytest-timeout" in str(call.excinfo.value):
        report.sections.append(("stacks of all threads", _stacks()))
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """Kill the processes that a worker of pytest-xdist had started when it ended with an error."""
    if error is None:
        return
    worker = {
        "PYTEST_XDIST_WORKER": node.workerinput["workerid"],
        "PYTEST_XDIST_TESTRUNUID": node.workerinput["testrunuid"],
    }
    for pid, _ in list(leftovers.marked(worker)):
        os.kill(pid, signal.SIGKILL)


def _arm() -> None:
    limit_s = float(os.environ.get(HARD_LIMIT_VARIABLE, HARD_LIMIT_S))
    faulthandler.dump_traceback_later(limit_s, exit=True, file=_stderr)


def _stacks() -> str:
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read()
