"""The flags of `kafkapy consumer-groups`, and the check of their combinations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkapy.cli.framework.exit_status import UsageError
from kafkapy.cli.framework.options import (
    ClusterOptions,
    available_if,
    flag,
    is_given,
    one_action,
    option_name,
    refuse,
    require,
    value,
    values,
)

ACTIONS: Final = (
    *("list_", "describe", "delete", "reset_offsets", "delete_offsets", "validate_regex"),
)
# In the order in which Kafka's tool checks them.
SCENARIOS: Final = (
    *("to_offset", "to_earliest", "to_latest", "shift_by"),
    *("to_datetime", "by_duration", "from_file", "to_current"),
)
VIEWS: Final = ("members", "offsets", "state")
TIMEOUT_MS: Final = 5000


@dataclass
class ConsumerGroupsOptions(ClusterOptions):
    """The flags of `ConsumerGroupCommandOptions`."""

    list_: bool = flag("List the groups.")
    describe: bool = flag("Describe groups: their offsets and lag, members or states.")
    delete: bool = flag("Delete groups that have no members.")
    reset_offsets: bool = flag("Reset the offsets of groups that have no members.")
    delete_offsets: bool = flag("Delete a group's offsets of topics.")
    validate_regex: str | None = value(
        "Check a regular expression as brokers do for groups of the consumer protocol (RE2).",
        metavar="REGEX",
    )
    group: list[str] = values("The group.", metavar="GROUP")
    all_groups: bool = flag("Every group.")
    topic: list[str] = values(
        "A topic, or partitions of it, for --reset-offsets and --delete-offsets.",
        metavar="TOPIC[:0,1]",
    )
    all_topics: bool = flag("With --reset-offsets: every partition with a committed offset.")
    members: bool = flag("With --describe: the members.")
    offsets: bool = flag("With --describe: offsets and lag; the default.")
    state: str | None = value(
        "With --describe: coordinator and state. With --list: show states, or only groups"
        " in these.",
        metavar="STATES",
        optional_value="",
    )
    type: str | None = value(
        "With --list: show types, or only groups of these: classic, consumer.",
        metavar="TYPES",
        optional_value="",
    )
    verbose: bool = flag("With --members: their partitions; with --state: epochs.")
    to_offset: int | None = value("Reset to an offset.", metavar="OFFSET")
    to_earliest: bool = flag("Reset to the log start offset.")
    to_latest: bool = flag("Reset to the log end offset.")
    shift_by: int | None = value(
        "Reset forward by this number of records, or backward if it is negative.", metavar="N"
    )
    to_datetime: str | None = value(
        "Reset to the first record at or after a time; UTC without a zone.",
        metavar="YYYY-MM-DDTHH:mm:SS.sss",
    )
    by_duration: str | None = value(
        "Reset to the offset at this time before now.", metavar="PnDTnHnMnS"
    )
    from_file: str | None = value("Reset to the offsets of a CSV file.", metavar="FILE")
    to_current: bool = flag("Reset to the committed offset, or to the log end if there is none.")
    dry_run: bool = flag("Only show the new offsets; the default.")
    execute: bool = flag("Commit the new offsets.")
    export: bool = flag("Write the new offsets as CSV, for --from-file.")
    timeout: int = value("The time limit.", metavar="MS", default=TIMEOUT_MS)
    strict: bool = flag("Exit with 1 after a failure; without this option with 0, as Kafka's tool.")


def check(options: ConsumerGroupsOptions) -> str:
    """Check the options. Returns the action.

    Raises:
        UsageError: the options are invalid; with the text and in the order of
            `ConsumerGroupCommandOptions.checkArgs`. Wrong option names in Kafka's text are
            corrected.
    """
    for name in ("members", "offsets", "verbose"):
        available_if(options, name, "describe")
    available_if(options, "state", "describe", "list_")
    available_if(options, "type", "list_")
    if options.validate_regex is None:
        require(options, "bootstrap_server")
    if options.describe:
        _check_describe(options)
    if options.delete:
        _check_named(options, "delete")
        if options.topic:
            raise UsageError(
                "The consumer does not support topic-specific offset deletion from a consumer"
                " group."
            )
    if options.delete_offsets and not (options.group and options.topic):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if options.reset_offsets:
        _check_reset(options)
    refuse(options, "group", "all_groups", "list_")
    refuse(options, "dry_run", "delete", "delete_offsets")  # Kafka's tool ignores it, and deletes
    refuse(options, "topic", "list_", "describe")
    listed = "--list, --describe, --delete, --reset-offsets, --delete-offsets, --validate-regex"
    return one_action(options, ACTIONS, listed)


def _check_named(options: ConsumerGroupsOptions, action: str) -> None:
    if not options.group and not options.all_groups:
        raise UsageError(f"Option [{action}] takes one of these options: [all-groups], [group]")


def _check_describe(options: ConsumerGroupsOptions) -> None:
    _check_named(options, "describe")
    if sum(is_given(options, view) for view in VIEWS) > 1:
        raise UsageError(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if options.state:
        raise UsageError("Option [describe] does not take a value for [state]")


def _check_reset(options: ConsumerGroupsOptions) -> None:
    if options.dry_run and options.execute:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    _check_named(options, "reset-offsets")
    for index, name in enumerate(SCENARIOS):
        refuse(options, name, *SCENARIOS[index + 1 :])
    if not any(is_given(options, name) for name in SCENARIOS):
        names = ", ".join(f"[{option_name(name)}]" for name in SCENARIOS)
        raise UsageError(
            f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]"
        )
    if not options.from_file and not options.all_topics and not options.topic:
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
