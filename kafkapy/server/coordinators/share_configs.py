"""Configs of share groups: the group's own (`configs --entity-type groups`), else the broker's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from kafkapy.common.config_def import ConfigValue
from kafkapy.common.ports import Clock
from kafkapy.replication.partition import READ_COMMITTED, READ_UNCOMMITTED
from kafkapy.replication.shares.share_partition import ShareLimits
from kafkapy.server.replicas.time_search import TimeSearch, search_in_turns
from kafkapy.server.requests.turns import Work

if TYPE_CHECKING:
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.storage.unified_log import UnifiedLog

_DURATION: Final = re.compile(
    r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_UNITS_MS: Final = (86_400_000, 3_600_000, 60_000, 1000)


GroupConfigs: TypeAlias = Callable[[str], Mapping[str, ConfigValue]]
"""Returns the group's own configs."""


class ShareConfigs:
    """Reads the configs of share groups."""

    def __init__(self, config: KafkaConfig, configs: GroupConfigs, clock: Clock) -> None:
        self._config = config
        self._configs = configs
        self._clock = clock

    def limits(self, group_id: str) -> ShareLimits:
        """The limits of a group's share partitions."""

        def number(name: str) -> int:
            value = own.get(name)
            return value if isinstance(value, int) else self._config.get_int(f"group.{name}")

        own = self._configs(group_id)
        return ShareLimits(
            number("share.partition.max.record.locks"),
            number("share.delivery.count.limit"),
            number("share.record.lock.duration.ms"),
            own.get("share.renew.acknowledge.enable", True) is True,
        )

    def isolation(self, group_id: str) -> int:
        """The isolation level at which a group reads."""
        level = self._configs(group_id).get("share.isolation.level", "read_uncommitted")
        return READ_COMMITTED if level == "read_committed" else READ_UNCOMMITTED

    def start_offset(self, group_id: str, find_log: Callable[[], UnifiedLog]) -> Work[int]:
        """The offset at which a new share partition begins. `find_log` returns its partition's log.
        It is called again after a turn of another thread.

        Raises:
            ApiError: the log cannot be read.
            LogDirFailure: its directory fails.
        """
        reset = str(self._configs(group_id).get("share.auto.offset.reset", "latest"))
        if reset == "earliest":
            return find_log().log_start_offset
        found = _DURATION.fullmatch(reset)
        if found is not None:
            age_ms = sum(
                float(value or 0) * unit
                for value, unit in zip(found.groups(), _UNITS_MS, strict=True)
            )
            now_ms = self._clock.time_ms()
            # No timestamp is below -1, and a float may be larger than any time.
            since_ms = now_ms - int(min(age_ms, now_ms + 1))

            def find(search: TimeSearch) -> int:
                log = find_log()
                search.begin(log)
                end = log.high_watermark
                first = search.found or log.offset_for_timestamp(
                    since_ms, end, search, search.start_offset
                )
                return end if first is None else min(first.offset, end)

            return (yield from search_in_turns(find))
        return find_log().high_watermark
