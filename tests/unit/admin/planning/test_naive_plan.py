"""Kafka's own plan."""

from __future__ import annotations

from random import Random

import pytest

from kafkapy.admin.planning.naive_plan import naive_plan
from kafkapy.common.errors import ApiError
from tests.harness.cores.assignments import assignment, brokers


def test_each_topic_is_placed_as_a_new_one_with_the_factor_of_its_first_partition() -> None:
    current = assignment((1, 2), (1, 2, 3), (2, 1)) | assignment((3,), topic="u")
    plan = naive_plan(current, brokers(1, 2, 3), lambda n: 0)
    placed = assignment((1, 2), (2, 3), (3, 1)) | assignment((1,), topic="u")
    assert plan == placed


def test_the_draws_say_where_it_begins() -> None:
    draws = iter([2, 0])
    plan = naive_plan(assignment((1, 2)), brokers(1, 2, 3), lambda n: next(draws))
    assert plan == assignment((3, 1))


def test_too_few_brokers() -> None:
    with pytest.raises(ApiError, match="Replication factor: 2 larger than available brokers: 1"):
        naive_plan(assignment((1, 2)), brokers(1), lambda n: 0)


def test_no_broker_that_is_alive() -> None:
    with pytest.raises(ApiError, match="Replication factor: 2 larger than available brokers: 0"):
        naive_plan(assignment((1, 2)), brokers(), Random().randrange)
