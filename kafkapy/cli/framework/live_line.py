"""One line on a terminal that is written over while long work goes on."""

from __future__ import annotations

import time
from typing import Final

from kafkapy.cli.framework.environment import Environment

_INTERVAL_S: Final = 0.2
_CLEAR: Final = "\r\033[K"


class LiveLine:
    """Shows the newest text, at most five times a second, and only to a person."""

    def __init__(self, env: Environment, *, wanted: bool = True) -> None:
        self._env = env
        self._wanted = wanted
        self._active = wanted and env.on_terminal
        self._next_s = 0.0
        self._shown = False

    def show(self, text: str) -> None:
        """Write over what stands there; an empty text changes nothing."""
        now_s = time.monotonic()
        if not self._active or not text or now_s < self._next_s:
            return
        self._next_s = now_s + _INTERVAL_S
        self._env.write(_CLEAR + text)
        self._env.stdout.flush()
        self._shown = True

    def stay(self, line: str) -> None:
        """A line that stays, for pipes too, at once."""
        self.clear()
        if self._wanted:
            self._env.line(line)
            self._env.stdout.flush()

    def clear(self) -> None:
        """Make room for a line that stays."""
        if self._shown:
            self._env.write(_CLEAR)
            self._shown = False
