"""Restarts of a broker that dies: a limited number, with growing delays."""

from __future__ import annotations

from typing import Final

DEATHS_MAX: Final = 5
HEALTHY_MS: Final = 60_000
_FIRST_DELAY_MS: Final = 1_000


class RestartPolicy:
    """Counts the deaths of one broker that follow each other closely."""

    def __init__(self) -> None:
        self.deaths = 0

    def record_death(self, uptime_ms: float) -> int | None:
        """Count a death. Returns the ms to wait before the next start; None after too many deaths.

        A broker that lived for HEALTHY_MS resets the count."""
        self.deaths = 1 if uptime_ms >= HEALTHY_MS else self.deaths + 1
        if self.deaths > DEATHS_MAX:
            return None
        delay: int = _FIRST_DELAY_MS << (self.deaths - 1)
        return delay
