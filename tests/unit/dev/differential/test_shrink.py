"""A failing sequence becomes as short as it can be."""

from __future__ import annotations

from dev.differential.shrink import shrink


def test_only_what_is_needed_to_fail_is_kept() -> None:
    needed = {3, 11, 12}
    assert shrink(range(20), lambda kept: needed <= set(kept), 200) == (3, 11, 12)


def test_attempts_are_bounded() -> None:
    made: list[tuple[int, ...]] = []

    def fails(kept: tuple[int, ...]) -> bool:
        made.append(kept)
        return 19 in kept

    assert 19 in shrink(range(20), fails, 3)
    assert len(made) <= 3
