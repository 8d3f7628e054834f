"""Assignments as sets of partitions."""

from __future__ import annotations

from kafkapy.coordinator.groups.consumer.assignment import (
    EMPTY_ASSIGNMENT,
    TopicIdPartition,
    assignment_of,
    is_subset,
    overlap,
    partitions_of,
)
from tests.harness.cores.consumer_shell import topic_id

A, B = topic_id(1), topic_id(2)


def test_an_assignment_is_its_partitions() -> None:
    partitions = {TopicIdPartition(A, 0), TopicIdPartition(A, 2), TopicIdPartition(B, 1)}
    assignment = assignment_of(partitions)
    assert assignment == {A: frozenset({0, 2}), B: frozenset({1})}
    assert {*partitions_of(assignment)} == partitions


def test_a_part_of_an_assignment() -> None:
    whole = {A: frozenset({0, 1}), B: frozenset({0})}
    assert is_subset(EMPTY_ASSIGNMENT, whole)
    assert is_subset({A: frozenset({1})}, whole)
    assert not is_subset({A: frozenset({1, 2})}, whole)
    assert not is_subset(whole, {A: frozenset({0, 1})})


def test_partitions_in_common() -> None:
    assert overlap({A: frozenset({0, 1})}, {A: frozenset({1})})
    assert not overlap({A: frozenset({0})}, {A: frozenset({1}), B: frozenset({0})})
    assert not overlap(EMPTY_ASSIGNMENT, {A: frozenset({1})})
