"""When a broker that died is started again: sooner the first time, and not for ever."""

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
        """How long to wait, in ms, before the next start; None to leave it. A broker that lived for
        HEALTHY_MS begins anew."""
        self.deaths = 1 if lived_ms >= HEALTHY_MS else self.deaths + 1
        if self.deaths > DEATHS_MAX:
            return None
        delay: int = _FIRST_DELAY_MS << (self.deaths - 1)
        return delay
