"""When a follower counts as caught up (`Replica.updateFetchState`)."""

from __future__ import annotations

from kafkapy.replication.replica import Replica


def test_a_new_leader_gives_isr_members_one_lag_time_and_others_none() -> None:
    inside, outside = Replica(2), Replica(3)
    inside.reset(1000, in_isr=True)
    outside.reset(1000, in_isr=False)
    assert inside.is_caught_up(10, 1500, 500)
    assert not inside.is_caught_up(10, 1501, 500)
    assert not outside.is_caught_up(10, 1000, 500)


def test_a_fetch_at_the_leaders_end_is_caught_up_now() -> None:
    replica = Replica(2)
    replica.on_fetch(10, 0, 2000, 10)
    assert replica.last_caught_up_ms == 2000
    assert replica.log_end_offset == 10


def test_the_end_reached_counts_whatever_the_time() -> None:
    replica = Replica(2)
    replica.on_fetch(10, 3, 2000, 10)
    assert replica.is_caught_up(10, 10**9, 1000)
    assert replica.log_start_offset == 3


def test_a_leader_that_goes_on_in_a_new_epoch_forgets_only_how_long_ago_it_was() -> None:
    replica = Replica(2)
    replica.on_fetch(10, 3, 2000, 10)
    replica.keep_position(9000, True, 12)
    assert (replica.log_end_offset, replica.log_start_offset) == (10, 3)
    assert replica.is_caught_up(12, 10_000, 1000)
    replica.keep_position(9000, False, 12)
    assert not replica.is_caught_up(12, 9000, 1000)
    assert replica.is_caught_up(10, 9000, 1000)


def test_who_was_never_heard_of_is_not_caught_up_even_when_the_clock_is_young() -> None:
    assert not Replica(2).is_caught_up(10, 5, 30_000)
