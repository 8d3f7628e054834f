"""Checks that this machine could not run: listed at the end of the run, never skipped silently."""

from __future__ import annotations

from dev import fetch_peers

_noted: dict[str, str] = {}


def note(check: str, reason: str) -> None:
    """Record that `check` is not checked in this run."""
    _noted[check] = reason


def lines() -> list[str]:
    """One line for each peer or circumstance that is not available."""
    everything = {**fetch_peers.missing(), **_noted}
    return [f"not checked: {check} ({reason})" for check, reason in sorted(everything.items())]
