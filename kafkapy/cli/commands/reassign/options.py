"""The flags of `kafkapy reassign`, and the check of their combinations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kafkapy.cli.framework.exit_status import UsageError
from kafkapy.cli.framework.options import (
    ClusterOptions,
    flag,
    one_action,
    option_name,
    require,
    value,
)
from kafkapy.common.comma_separated import java_split
from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import is_natural

ACTIONS: Final = ("generate", "execute", "verify", "cancel", "list_")
PLANS: Final = ("strategy", "decommission", "replication_factor")
# The options that each action accepts; it refuses the others (KIP-455 and kafkapy's own).
OPTIONAL: Final[dict[str, frozenset[str]]] = {
    "generate": frozenset(
        {"topics_to_move_json_file", "broker_list", "disable_rack_aware", *PLANS}
    ),
    "execute": frozenset(
        {
            *("reassignment_json_file", "additional", "throttle", "timeout", "batch_size"),
            *("replica_alter_log_dirs_throttle", "dry_run", "disallow_replication_factor_change"),
        }
    ),
    "verify": frozenset({"reassignment_json_file", "preserve_throttles", "watch", "dry_run"}),
    "cancel": frozenset({"reassignment_json_file", "preserve_throttles", "timeout", "dry_run"}),
    "list_": frozenset(),
}
_ACTION_OPTIONS: Final = sorted(frozenset[str]().union(*OPTIONAL.values()))
NEEDS_BROKERS: Final = (
    *("additional", "cancel", "command_config", "replica_alter_log_dirs_throttle", "list_"),
    *("timeout", *PLANS, "batch_size", "watch", "dry_run", "disallow_replication_factor_change"),
)


class Strategy(StrEnum):
    """Planning strategies of `--generate`."""

    kafka = "kafka"
    """Assigns all replicas of each topic again, as Kafka's tool."""
    minimal = "minimal"
    """Moves only the replicas that must move for an even distribution."""


@dataclass
class ReassignOptions(ClusterOptions):
    """The flags of `ReassignPartitionsCommand`, and kafkapy's own."""

    generate: bool = flag("Propose a reassignment; nothing is changed.")
    execute: bool = flag("Begin the moves of a reassignment file.")
    verify: bool = flag(
        "Show the states of the moves. After the last move, remove the throttles, and restore"
        " once those from before --execute."
    )
    cancel: bool = flag("Stop the moves of a reassignment file.")
    list_: bool = flag("List the partitions that are moving.")
    reassignment_json_file: str | None = value(
        "The target replicas of partitions. Throttles are saved in FILE.throttles, which standard"
        " input and <(...) lack.",
        metavar="FILE",
    )
    topics_to_move_json_file: str | None = value(
        "With --generate: the topics. With --strategy minimal or --decommission, the"
        " default is all topics; with --replication-factor, all topics that are not"
        " internal.",
        metavar="FILE",
    )
    broker_list: str | None = value(
        "With --generate: the brokers for the replicas. With --strategy minimal,"
        " --decommission or --replication-factor, the default is all live brokers.",
        metavar="ID,ID,...",
    )
    disable_rack_aware: bool = flag("With --generate: ignore racks.")
    strategy: Strategy = value(
        "With --generate: kafka assigns all replicas again; minimal moves the fewest"
        " replicas that balance replicas and leaders over the brokers and the racks.",
        metavar="kafka|minimal",
        default=Strategy.kafka,
        choices=Strategy,
    )
    decommission: str | None = value(
        "With --generate: move all replicas off these brokers; other replicas stay.",
        metavar="ID,ID,...",
    )
    replication_factor: int | None = value(
        "With --generate: give the topics this number of replicas; other replicas stay.",
        metavar="N",
        bits=32,
    )
    additional: bool = flag("With --execute: allow it while other partitions move.")
    disallow_replication_factor_change: bool = flag(
        "With --execute: refuse targets with another number of replicas; nothing is changed."
    )
    throttle: int = value(
        "With --execute: the maximum bytes a second of copies between brokers.",
        metavar="BYTES",
        default=-1,
    )
    replica_alter_log_dirs_throttle: int = value(
        "With --execute: the maximum bytes a second of copies between log directories.",
        metavar="BYTES",
        default=-1,
    )
    preserve_throttles: bool = flag("With --verify, --cancel: keep the throttles.")
    timeout: int = value(
        "With --execute: the time limit for log directory moves to begin, and in batches"
        " for a broker to return.",
        metavar="MS",
        default=10_000,
    )
    batch_size: int | None = value(
        "With --execute: move this number of partitions at a time, and wait until their"
        " replicas are in sync. The same command continues an interrupted run.",
        metavar="N",
    )
    dry_run: bool = flag(
        "With --execute, --verify, --cancel: print the requests without sending them."
    )
    watch: bool = flag("With --verify: show the progress of the moves until they end.")
    strict: bool = flag("With --verify: exit with 1 unless all replicas are at their targets.")
    zookeeper: str | None = value(
        "Deprecated: work with the znodes of a cluster up to Kafka 3.9.", metavar="HOST:PORT/PATH"
    )

    @property
    def plans(self) -> bool:
        """Whether `--generate` uses kafkapy's planner instead of Kafka's."""
        minimal = self.strategy is Strategy.minimal
        return minimal or self.decommission is not None or self.replication_factor is not None


_DEFAULTS: Final = {
    name: field.default for name, field in ReassignOptions.__dataclass_fields__.items()
}


def check(options: ReassignOptions) -> str:
    """Check the options. Returns the action.

    Raises:
        UsageError: the options are invalid; with the text of `ReassignPartitionsCommandOptions`.
    """
    listed = "--generate, --execute, --verify, --cancel, --list"
    action = one_action(options, ACTIONS, listed)
    if options.bootstrap_server is None and options.zookeeper is None:
        raise UsageError("Please specify --bootstrap-server")
    if options.bootstrap_server is None:
        for name in NEEDS_BROKERS:
            if _is_set(options, name):
                raise UsageError(
                    f'You must specify --bootstrap-server when using "[{option_name(name)}]"'
                )
    if action in ("execute", "verify", "cancel"):
        require(options, "reassignment_json_file")
    elif action == "generate" and not options.plans:
        require(options, "topics_to_move_json_file", "broker_list")
    for name in _ACTION_OPTIONS:
        if _is_set(options, name) and name not in OPTIONAL[action]:
            raise UsageError(
                f'Option "[{option_name(name)}]" can\'t be used with action'
                f' "[{option_name(action)}]"'
            )
    if options.batch_size is not None and options.batch_size < 1:
        raise UsageError("--batch-size must be at least 1")
    return action


def broker_ids(text: str) -> list[int]:
    """`0,1,2` as ids.

    Raises:
        ConfigError: a part is not an id, or an id occurs twice.
    """
    ids = []
    for word in java_split(text) or [""]:
        if not is_natural(word.strip()):
            raise ConfigError(f"'{word}' is not a broker id")
        ids.append(int(word))
    duplicates = sorted({broker_id for broker_id in ids if ids.count(broker_id) > 1})
    if duplicates:
        raise ConfigError(f"Broker list contains duplicate entries: {duplicates}")
    return ids


def _is_set(options: ReassignOptions, name: str) -> bool:
    return bool(getattr(options, name) != _DEFAULTS[name])
