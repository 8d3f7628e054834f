"""Checks that this machine could not run: listed at the end of the run, never skipped silently."""

from __future__ import annotations

from dev import fetch_peers

_noted: dict[str, str] = {}


def note(what: str, why: str) -> None:
    """Record that `what` is not checked in this run."""
    _noted[what] = why


def lines() -> list[str]:
    """One line for each peer or circumstance that is not available."""
    everything = {**fetch_peers.missing(), **_noted}
    return [f"not checked: {what} ({why})" for what, why in sorted(everything.items())]
