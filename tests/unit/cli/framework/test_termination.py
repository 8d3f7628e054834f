"""SIGTERM and SIGINT unwind, and afterwards their handlers are what they were."""

import signal
from collections.abc import Iterator

import pytest

from kafkapy.cli.framework.termination import TERMINATED, terminable

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture(autouse=True)
def python_handles_ctrl_c() -> Iterator[None]:
    """As at a prompt. The tests may run in a job that a script put into the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def work_until_ended(unwound: list[bool], number: signal.Signals) -> None:
    with terminable():
        try:
            signal.raise_signal(number)
        finally:
            unwound.append(True)


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
def test_it_unwinds(number: signal.Signals, raised: type[BaseException]) -> None:
    before = list(map(signal.getsignal, SIGNALS))
    unwound: list[bool] = []
    with pytest.raises(raised) as ended:
        work_until_ended(unwound, number)
    assert unwound == [True]
    assert getattr(ended.value, "code", TERMINATED) == TERMINATED
    assert list(map(signal.getsignal, SIGNALS)) == before


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    """Shells start background jobs of scripts so."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with terminable():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_has_a_handler_in_python() -> None:
    """confluent-kafka sometimes loses the exception of Python's own handler."""
    with terminable():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
