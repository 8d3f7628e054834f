"""A rate that is kept."""

from kafkapy.tools.perf.throughput import Throttle


def test_no_limit_never_waits() -> None:
    throttle = Throttle(-1, 0.0)
    assert not throttle.blocks
    assert throttle.wait_s(1_000_000, 0.001) == 0


def test_what_is_ahead_waits_for_one_share() -> None:
    throttle = Throttle(100, 10.0)
    assert throttle.wait_s(10, 10.2) == 0, "50 a second is no more than 100"
    assert throttle.wait_s(10, 10.05) == 0.01


def test_short_waits_are_added_up() -> None:
    throttle = Throttle(1000, 0.0)
    assert [round(throttle.wait_s(100, 0.01), 6) for _ in range(4)] == [0, 0.002, 0, 0.002]


def test_a_target_of_zero_blocks() -> None:
    assert Throttle(0, 0.0).blocks
