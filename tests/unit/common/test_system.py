"""The machine's clocks and entropy behind the ports."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import pytest

from kafkapy.common import system
from kafkapy.common.system import GilPause, SystemClock, SystemRandom


def test_wall_time_is_in_milliseconds_since_the_epoch() -> None:
    before = time.time_ns() // 1_000_000
    now = SystemClock().time_ms()
    assert before <= now <= time.time_ns() // 1_000_000


def test_deadlines_are_on_the_event_loops_clock() -> None:
    before = int(time.monotonic() * 1000)
    now = SystemClock().monotonic_ms()
    assert before <= now <= time.monotonic() * 1000


def test_chance_covers_its_whole_range_and_no_more() -> None:
    random = SystemRandom()
    assert {random.below(3) for _ in range(200)} == {0, 1, 2}
    assert random.below(1) == 0
    made = {random.bytes(16) for _ in range(10)}
    assert len(made) == 10
    assert {len(one) for one in made} == {16}


def test_a_process_opens_as_many_files_as_the_machine_allows() -> None:
    """In a process of its own: this one's limit stays."""
    low = 64
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    code = (
        "import resource\n"
        "from kafkapy.common.system import raise_open_files_limit\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({low}, {hard}))\n"
        "raise_open_files_limit()\n"
        "print(*resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(hard), str(hard)]


def test_a_thread_pauses_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, pauses = [5.0], []
    monkeypatch.setattr(system.time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(system.time, "sleep", pauses.append)
    pause = GilPause()
    for _ in range(100):
        now_s[0] += GilPause.INTERVAL_S / 10 + 1e-9
        pause()
    assert pauses == [GilPause.PAUSE_S] * 10
