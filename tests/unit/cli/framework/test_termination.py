"""SIGTERM unwinds, and afterwards is what it was."""

import os
import signal

import pytest

from kafkapy.cli.framework.termination import TERMINATED, stoppable, terminable


def work_until_ended(unwound: list[bool]) -> None:
    with terminable():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        finally:
            unwound.append(True)


def test_it_unwinds_with_the_shells_status() -> None:
    before = signal.getsignal(signal.SIGTERM)
    unwound: list[bool] = []
    with pytest.raises(SystemExit) as ended:
        work_until_ended(unwound)
    assert (ended.value.code, unwound) == (TERMINATED, [True])
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
def test_the_first_signal_stops_and_the_second_raises(
    number: signal.Signals, raised: type[BaseException]
) -> None:
    before = signal.getsignal(number)
    stops: list[int] = []

    def work_on() -> None:
        with stoppable(lambda: stops.append(1)):
            signal.raise_signal(number)
            stops.append(2)
            with pytest.raises(raised):
                signal.raise_signal(number)

    with pytest.raises(raised):
        work_on()
    assert (stops, signal.getsignal(number)) == ([1, 2], before)
