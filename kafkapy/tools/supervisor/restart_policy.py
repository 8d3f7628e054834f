"""The delays between restarts of a broker that dies: growing, and limited in number."""

from __future__ import annotations

from typing import Final

DEATHS_MAX: Final = 5
HEALTHY_MS: Final = 60_000
_FIRST_DELAY_MS: Final = 1_000


class RestartPolicy:
    """The deaths of one broker that were close to each other."""

    def __init__(self) -> None:
        self.deaths = 0

    def died(self, lived_ms: float) -> int | None:
        """Returns the ms to wait before the next start; None if there shall be none. The count
        begins anew with a broker that lived for HEALTHY_MS."""
        self.deaths = 1 if lived_ms >= HEALTHY_MS else self.deaths + 1
        if self.deaths > DEATHS_MAX:
            return None
        delay: int = _FIRST_DELAY_MS << (self.deaths - 1)
        return delay
