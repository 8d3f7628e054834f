"""SIGTERM unwinds, and afterwards is what it was."""

import os
import signal

import pytest

from kafkapy.cli.framework.termination import TERMINATED, terminable


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
