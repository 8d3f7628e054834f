"""Bytes a second that throttled replicas may move (`kafka.server.ReplicationQuotaManager`).

A topic config names the throttled replicas. Two dynamic configs of each broker set the rate at
which it sends as leader and fetches as follower. Replicas in sync are never delayed, but their
bytes count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from kafkapy.common.errors import ConfigError

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIRS_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
_ALL: Final = "*"
_DIGITS_MAX: Final = 10  # of an id; Python parses at most 4300 digits


@lru_cache(maxsize=256)
def _partitions_on(replicas: tuple[str, ...], broker_id: int) -> frozenset[int]:
    pairs = (replica.split(":") for replica in replicas if ":" in replica)
    return frozenset(
        int(partition)
        for partition, broker in pairs
        if max(len(partition), len(broker)) <= _DIGITS_MAX and int(broker) == broker_id
    )


class ReplicationQuota:
    """One side's quota on broker `broker_id`; the rate is over `num_windows` of `window_ms`."""

    def __init__(self, broker_id: int, window_ms: int, num_windows: int) -> None:
        self.limit: int | None = None  # bytes a second
        self._broker_id = broker_id
        self._window_ms = window_ms
        self._span_ms = window_ms * num_windows
        self._windows: deque[tuple[int, int]] = deque()  # (start in ms, bytes)
        self._total = 0

    def covers(self, throttled: Sequence[str], partition: int) -> bool:
        """Whether a topic's `*.replication.throttled.replicas` name this broker's replica."""
        if self.limit is None or not throttled:
            return False
        if throttled[0] == _ALL:
            return True
        return partition in _partitions_on(tuple(throttled), self._broker_id)

    def record(self, size: int, now_ms: int) -> None:
        """Count `size` bytes of throttled replicas."""
        windows = self._windows
        if windows and now_ms < windows[-1][0] + self._window_ms:
            start_ms, before = windows.pop()
            windows.append((start_ms, before + size))
        else:
            windows.append((now_ms, size))
        self._total += size

    def rate(self, now_ms: int) -> float:
        """The rate in bytes a second over the remembered windows, at least one."""
        windows = self._windows
        while windows and now_ms - windows[0][0] >= self._span_ms:
            self._total -= windows.popleft()[1]
        if not windows:
            return 0.0
        return self._total * 1000 / max(now_ms - windows[0][0], self._window_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        """Whether throttled replicas that are out of sync must wait."""
        return self.limit is not None and self.rate(now_ms) > self.limit


class ReplicationQuotas:
    """The leader's and follower's quotas of one broker, and that of its copies between log
    directories.
    """

    def __init__(self, broker_id: int, window_ms: int = 1000, num_windows: int = 11) -> None:
        self.leader = ReplicationQuota(broker_id, window_ms, num_windows)
        self.follower = ReplicationQuota(broker_id, window_ms, num_windows)
        self.log_dirs = ReplicationQuota(broker_id, window_ms, num_windows)

    def set_rates(self, configs: Mapping[str, str]) -> None:
        """Apply the broker's dynamic configs. Without a config there is no limit.

        Raises:
            ConfigError: a rate is no number; nothing has changed.
        """
        leader, follower = _rate(configs, LEADER_RATE), _rate(configs, FOLLOWER_RATE)
        log_dirs = _rate(configs, LOG_DIRS_RATE)
        self.leader.limit, self.follower.limit = leader, follower
        self.log_dirs.limit = log_dirs


def _rate(configs: Mapping[str, str], name: str) -> int | None:
    text = configs.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise ConfigError(f"Invalid value {text} for configuration {name}: not a number") from error
