"""What this run could not check on this machine: printed at its end, never skipped in silence."""

from __future__ import annotations

from dev import fetch_peers

_noted: dict[str, str] = {}


def note(what: str, why: str) -> None:
    """Record that `what` is not checked in this run."""
    _noted[what] = why


def lines() -> list[str]:
    """One line for each peer or circumstance that could not be had."""
    everything = {**fetch_peers.missing(), **_noted}
    return [f"not checked: {what} ({why})" for what, why in sorted(everything.items())]
