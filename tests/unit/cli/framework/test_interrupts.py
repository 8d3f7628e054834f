"""The first Ctrl-C is noted, the second raised."""

from __future__ import annotations

import signal

import pytest

from kafkapy.cli.framework.interrupts import FirstInterrupt


def test_the_first_is_noted_and_the_second_raised() -> None:
    before = signal.getsignal(signal.SIGINT)
    with FirstInterrupt() as interrupt:
        assert not interrupt.seen
        signal.raise_signal(signal.SIGINT)
        assert interrupt.seen
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
