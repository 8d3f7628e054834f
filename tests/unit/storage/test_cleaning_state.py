"""The states of a log's cleaning."""

from __future__ import annotations

import pytest

from kafkapy.storage.cleaning_state import CleaningState


def in_state(*steps: str) -> CleaningState:
    state = CleaningState()
    for step in steps:
        getattr(state, step)()
    return state


@pytest.mark.parametrize(
    ("steps", "in_progress", "aborted", "may_begin"),
    [
        ("", False, False, True),
        ("begin", True, False, False),
        ("begin abort", True, True, False),
        ("begin pause", True, True, False),
        ("begin pause resume", True, True, False),
        ("begin abort end", False, False, True),
        ("begin pause end", False, False, False),
        ("begin pause end resume", False, False, True),
        ("begin end", False, False, True),
        ("abort", False, False, True),
        ("pause", False, False, False),
        ("pause pause resume", False, False, False),
        ("pause pause resume resume", False, False, True),
        ("begin abort end begin", True, False, False),
    ],
)
def test_the_table(steps: str, in_progress: bool, aborted: bool, may_begin: bool) -> None:
    state = in_state(*steps.split())
    assert (state.in_progress, state.is_aborted, state.may_begin) == (
        in_progress, aborted, may_begin,
    )  # fmt: skip


def test_the_end_tells_whether_the_result_counts() -> None:
    assert in_state("begin").end()
    assert not in_state("begin", "abort").end()
    assert not in_state("begin", "pause", "resume").end()


def test_the_lowest_truncation_is_kept() -> None:
    state = in_state("begin")
    for offset in (7, 3, 9):
        state.record_truncation(offset)
    assert (state.truncated_to, state.is_aborted) == (3, True)
