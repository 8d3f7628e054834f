"""Configuration of the coordinators, under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from kafkapy.common.config_def import ConfigValue

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """Configs of a coordinator, with an underscore for each dot."""

    @classmethod
    def from_values(cls, values: Mapping[str, ConfigValue]) -> Self:
        """Pick this class's keys out of parsed broker configs; a missing key has its default."""
        chosen: dict[str, Any] = {}  # type: ignore[explicit-any]
        for field in fields(cls):
            value = values.get(field.name.replace("_", "."))
            if isinstance(value, int | str):
                chosen[field.name] = value
            elif isinstance(value, list):
                chosen[field.name] = tuple(value)
        return cls(**chosen)


@dataclass(frozen=True, slots=True)
class GroupConfig(CoordinatorConfig):
    """The broker's `group.*`, `offset.*` and `offsets.*` keys."""

    offsets_topic_num_partitions: int = 50
    offsets_retention_minutes: int = 10_080
    offset_metadata_max_bytes: int = 4_096
    group_initial_rebalance_delay_ms: int = 3_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_size: int = 2**31 - 1
    group_share_session_timeout_ms: int = 45_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_max_size: int = 200
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000

    @property
    def assignors(self) -> tuple[str, ...]:
        """The names of the server-side assignors, the default first. Class names, as in Kafka 3.9's
        default, are shortened."""
        names = (name.rpartition(".")[2] for name in self.group_consumer_assignors)
        return tuple(name.removesuffix("Assignor").lower() for name in names)

    @property
    def may_upgrade_groups(self) -> bool:
        """Whether classic groups with members may become consumer groups."""
        return self.group_consumer_migration_policy.lower() in ("upgrade", "bidirectional")

    @property
    def may_downgrade_groups(self) -> bool:
        """Whether consumer groups with members may become classic groups."""
        return self.group_consumer_migration_policy.lower() in ("downgrade", "bidirectional")

    @property
    def may_mix_protocols(self) -> bool:
        """Whether classic members may join consumer groups that have members."""
        return self.may_upgrade_groups or self.may_downgrade_groups

    @property
    def offsets_retention_ms(self) -> int:
        """The retention of commits after their group's last use."""
        return self.offsets_retention_minutes * _MINUTE_MS


@dataclass(frozen=True, slots=True)
class TransactionConfig(CoordinatorConfig):
    """The broker's `transaction.*` and `transactional.*` keys."""

    transaction_state_log_num_partitions: int = 50
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000


@dataclass(frozen=True, slots=True)
class ShareConfig(CoordinatorConfig):
    """The broker's `share.coordinator.*` keys."""

    share_coordinator_state_topic_num_partitions: int = 50
    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    share_coordinator_cold_partition_snapshot_interval_ms: int = 300_000
