"""The first signal is noted, the second raised."""

from __future__ import annotations

import signal

import pytest

from kafkapy.cli.framework.interrupts import FirstInterrupt, stoppable


def test_the_first_is_noted_and_the_second_raised() -> None:
    before = signal.getsignal(signal.SIGINT)
    with FirstInterrupt() as interrupt:
        assert not interrupt.seen
        signal.raise_signal(signal.SIGINT)
        assert interrupt.seen
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
def test_the_first_signal_is_raised_after_the_block_and_the_second_raises(
    number: signal.Signals, raised: type[BaseException]
) -> None:
    before = signal.getsignal(number)
    seen: list[bool] = []

    def work_on() -> None:
        with stoppable() as interrupt:
            seen.append(interrupt.seen)
            signal.raise_signal(number)
            seen.append(interrupt.seen)
            with pytest.raises(raised):
                signal.raise_signal(number)

    with pytest.raises(raised):
        work_on()
    assert (seen, signal.getsignal(number)) == ([False, True], before)
