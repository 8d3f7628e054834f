"""The result of a run of the fuzzer against one broker."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Worst:
    """The requests of one API that were the slowest."""

    requests: int = 0
    unanswered: int = 0
    used_s: float = 0.0  # of processor time, of one request
    used_what: str = ""
    delay_s: float = 0.0  # of another client
    delay_what: str = ""


@dataclass
class Result:
    """The result of one run against one broker."""

    broker: str
    seed: int
    requests: int = 0
    pings: int = 0
    took_s: float = 0.0
    start_bytes: int = 0
    peak_bytes: int = 0
    peaks: list[str] = field(default_factory=list)  # how resident memory rose, step by step
    end_bytes: int = 0
    worst: dict[str, Worst] = field(default_factory=lambda: defaultdict(Worst))
    violations: list[str] = field(default_factory=list)

    @property
    def growth_bytes(self) -> int:
        return self.peak_bytes - self.start_bytes
