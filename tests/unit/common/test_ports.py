"""The ports have the verbs that the machine's adapters and the tests' stand-ins implement."""

from __future__ import annotations

from kafkapy.common.ports import Clock, Random
from kafkapy.common.system import SystemClock, SystemRandom
from tests.harness.cores.ports import CountingRandom, ManualClock, SeededRandom


def test_every_clock_and_every_random_has_every_verb() -> None:
    clocks = (SystemClock, ManualClock)
    randoms = (SystemRandom, SeededRandom, CountingRandom)
    for port, adapters in ((Clock, clocks), (Random, randoms)):
        verbs = {name for name in vars(port) if not name.startswith("_")}
        assert verbs in ({"time_ms", "monotonic_ms"}, {"below", "bytes"})
        for adapter in adapters:
            assert verbs <= set(dir(adapter)), adapter
