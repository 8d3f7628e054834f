"""`kafkapy share-groups`: Kafka's `kafka-share-groups.sh` (`ShareGroupCommand`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.failures import Failures
from kafkapy.cli.framework.options import (
    ClusterOptions,
    OutputFormat,
    available_if,
    flag,
    is_given,
    one_action,
    refuse,
    require,
    timeout_of,
    value,
    values,
)
from kafkapy.cli.framework.output import show
from kafkapy.common.errors import ApiError, ConfigError, KafkapyError

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster
    from kafkapy.common.topic_partition import TopicPartition
    from kafkapy.tools.groups.offset_reset import Reset

ACTIONS: Final = ("list_", "describe", "delete", "reset_offsets", "delete_offsets")
SCENARIOS: Final = ("to_datetime", "to_earliest", "to_latest")
VIEWS: Final = ("members", "offsets", "state")
TIMEOUT_MS: Final = 30_000


@dataclass
class ShareGroupsOptions(ClusterOptions):
    """The flags of `ShareGroupCommandOptions`."""

    list_: bool = flag("List the share groups.")
    describe: bool = flag("Describe share groups: their offsets and lag, members or states.")
    delete: bool = flag("Delete share groups that have no members.")
    reset_offsets: bool = flag("Reset the start offsets of a group that has no members.")
    delete_offsets: bool = flag("Delete a group's offsets of topics.")
    group: list[str] = values("The share group.", metavar="GROUP")
    all_groups: bool = flag("Every share group.")
    topic: list[str] = values(
        "A topic, or partitions of it, for --reset-offsets; a topic for --delete-offsets.",
        metavar="TOPIC[:0,1]",
    )
    all_topics: bool = flag("With --reset-offsets: every partition of the group.")
    members: bool = flag("With --describe: the members.")
    offsets: bool = flag("With --describe: start offsets and lag; the default.")
    state: str | None = value(
        "With --describe: coordinator and state. With --list: show states, or only groups"
        " in these.",
        metavar="STATES",
        optional_value="",
    )
    verbose: bool = flag("With --describe: epochs.")
    to_earliest: bool = flag("Reset to the log start offset.")
    to_latest: bool = flag("Reset to the log end offset.")
    to_datetime: str | None = value(
        "Reset to the first record at or after a time; UTC without a zone.",
        metavar="YYYY-MM-DDTHH:mm:SS.sss",
    )
    dry_run: bool = flag("Only show the new offsets.")
    execute: bool = flag("Alter the offsets.")
    timeout: int = value("The time limit.", metavar="MS", default=TIMEOUT_MS)
    strict: bool = flag("Exit with 1 after a failure; without this option with 0, as Kafka's tool.")


def check(options: ShareGroupsOptions) -> str:
    """Check the options. Returns the action.

    Raises:
        UsageError: the options are invalid; with the text of `ShareGroupCommandOptions.checkArgs`.
    """
    for name in ("members", "offsets", "verbose"):
        available_if(options, name, "describe")
    available_if(options, "state", "describe", "list_")
    require(options, "bootstrap_server")
    if options.describe or options.delete:
        if not options.group and not options.all_groups:
            action = "describe" if options.describe else "delete"
            raise UsageError(f"Option [{action}] takes one of these options: [all-groups], [group]")
        if sum(is_given(options, view) for view in VIEWS) > 1:
            raise UsageError(
                "Option [describe] takes at most one of these options: [members], [offsets],"
                " [state]"
            )
    if options.describe and options.state:
        raise UsageError("Option [describe] does not take a value for [state]")
    if options.delete_offsets and not (options.group and options.topic):
        raise UsageError("Option [delete-offsets] takes the following options: [topic], [group]")
    if options.reset_offsets:
        _check_reset(options)
    if (options.reset_offsets or options.delete_offsets) and len(options.group) > 1:
        raise UsageError("Found multiple arguments for option group, but you asked for only one")
    refuse(options, "group", "all_groups", "list_")
    refuse(options, "dry_run", "delete", "delete_offsets")  # Kafka's tool ignores it, and deletes
    refuse(options, "topic", "list_", "describe", "delete")
    listed = "--list, --describe, --delete, --reset-offsets, --delete-offsets"
    return one_action(options, ACTIONS, listed)


def _check_reset(options: ShareGroupsOptions) -> None:
    if options.dry_run and options.execute:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run].")
    if not options.dry_run and not options.execute:
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not options.group:
        raise UsageError("Option [reset-offsets] takes the option: [group]")
    if sum(is_given(options, name) for name in SCENARIOS) != 1:
        raise UsageError(
            "Option [reset-offsets] takes one of these options: [to-datetime], [to-earliest],"
            " [to-latest]"
        )
    if bool(options.topic) == options.all_topics:
        raise UsageError("Option [reset-offsets] takes one of these options: [all-topics], [topic]")


def run(options: ShareGroupsOptions, env: Environment) -> ExitStatus:
    """Check the flags, then do the one action. Most failures print a line on stdout and exit 0."""
    action = check(options)
    is_quiet = options.output is OutputFormat.json
    failures = Failures(env, is_quiet=is_quiet, strict=options.strict)
    try:
        with options.connect(env) as cluster:
            cluster.api_timeout_ms = timeout_of(options.timeout)
            cluster.request_timeout_ms = cluster.api_timeout_ms
            _ACTIONS[action](cluster, options, env, failures)
    except UsageError:
        raise
    except KafkapyError as error:
        if env.debug:
            raise
        failures.report(f"Executing share group command failed due to {error}", error)
    return failures.status


def _groups(cluster: Cluster, options: ShareGroupsOptions) -> list[str]:
    from kafkapy.admin.share_groups import list_share_groups

    if options.all_groups:
        return [group.group_id for group in list_share_groups(cluster)]
    return list(dict.fromkeys(options.group))


def _list(
    cluster: Cluster, options: ShareGroupsOptions, env: Environment, failures: Failures
) -> None:
    from kafkapy.admin.share_groups import STATES, list_share_groups
    from kafkapy.cli.views.share_groups import list_report

    by_lower = {name.lower(): name for name in STATES}
    words = [word.strip().lower() for word in (options.state or "").split(",") if word.strip()]
    if any(word not in by_lower for word in words):
        raise UsageError(
            f"Invalid state list '{options.state}'. Valid states are: {', '.join(STATES)}"
        )
    found = list_share_groups(cluster, [by_lower[word] for word in words])
    show(env, list_report(found, states=options.state is not None), options.output)


def _describe(
    cluster: Cluster, options: ShareGroupsOptions, env: Environment, failures: Failures
) -> None:
    from kafkapy.admin.share_groups import describe_share_group, share_offsets
    from kafkapy.cli.views.share_groups import members_report, offsets_report, states_report

    found = [describe_share_group(cluster, group) for group in sorted(_groups(cluster, options))]
    verbose = options.verbose
    for group in found:
        if group.state == "Empty" and (options.members or options.state is not None):
            env.warn(f"\nShare group '{group.group_id}' has no active members.")
    if options.state is not None:
        report = states_report(found, verbose=verbose)
    elif options.members:
        report = members_report(found, verbose=verbose)
    else:
        offsets = {group.group_id: share_offsets(cluster, group.group_id) for group in found}
        report = offsets_report(offsets, verbose=verbose)
    show(env, report, options.output)


def _delete(
    cluster: Cluster, options: ShareGroupsOptions, env: Environment, failures: Failures
) -> None:
    from kafkapy.admin.groups import delete_groups
    from kafkapy.admin.share_groups import list_share_groups
    from kafkapy.cli.views.share_groups import deleted_groups_report
    from kafkapy.common.errors import ErrorCode

    states = {group.group_id: group.state for group in list_share_groups(cluster)}
    wanted = _groups(cluster, options)
    results: dict[str, ApiError | None] = dict.fromkeys(wanted)
    for group in wanted:
        if group not in states:
            message = f"Group '{group}' is not a share group."
            results[group] = ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)
        elif states[group] != "Empty":
            message = f"Share group '{group}' is not EMPTY."
            results[group] = ApiError(ErrorCode.NON_EMPTY_GROUP, message)
    deletable = [group for group in wanted if results[group] is None]
    results |= delete_groups(cluster, deletable)
    if any(results.values()):
        failures.add()
    show(env, deleted_groups_report(results), options.output)


def _delete_offsets(
    cluster: Cluster, options: ShareGroupsOptions, env: Environment, failures: Failures
) -> None:
    from kafkapy.admin.share_groups import delete_share_offsets
    from kafkapy.cli.views.share_groups import deleted_offsets_report

    refusal = None
    try:
        results = delete_share_offsets(cluster, options.group[0], options.topic)
    except ApiError as error:
        refusal = error.message
        results = dict.fromkeys(options.topic, error)
    if any(results.values()):
        failures.add()
    show(env, deleted_offsets_report(results, refusal), options.output)


def _reset_offsets(
    cluster: Cluster, options: ShareGroupsOptions, env: Environment, failures: Failures
) -> None:
    """Plan the reset; with --execute, alter the offsets."""
    from kafkapy.admin.share_groups import alter_share_offsets
    from kafkapy.cli.views.share_groups import reset_report
    from kafkapy.tools.groups.group_reset import ClusterOffsets
    from kafkapy.tools.groups.offset_reset import plan

    group = options.group[0]
    _require_empty(cluster, group)
    try:
        partitions = _partitions(cluster, options, group)
        planned = plan(_reset(options), partitions, {}, ClusterOffsets(cluster), env.warn)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    if options.execute:
        for partition, alter_error in alter_share_offsets(cluster, group, planned).items():
            if alter_error is not None:
                failures.report(f"{partition}: {alter_error.message}", alter_error)
                del planned[partition]
    show(env, reset_report(group, planned, executed=options.execute), options.output)


def _require_empty(cluster: Cluster, group: str) -> None:
    """
    Raises:
        UsageError: the group has members. As in Kafka's tool, a dry run fails too.
    """
    from kafkapy.admin.share_groups import describe_share_group
    from kafkapy.common.errors import ErrorCode

    try:
        state = describe_share_group(cluster, group).state
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return
    if state not in ("Empty", "Dead"):
        raise UsageError(f"Share group '{group}' is not empty.")


def _partitions(cluster: Cluster, options: ShareGroupsOptions, group: str) -> list[TopicPartition]:
    from kafkapy.admin.share_groups import share_offsets
    from kafkapy.tools.groups.group_reset import topic_partitions
    from kafkapy.tools.groups.offset_reset import expand, parse_topic_scope

    if options.all_topics:
        return list(share_offsets(cluster, group))
    scopes = [parse_topic_scope(word) for word in options.topic]
    return expand(scopes, lambda topic: topic_partitions(cluster, topic))


def _reset(options: ShareGroupsOptions) -> Reset:
    from kafkapy.tools.groups.offset_reset import Reset, Scenario
    from kafkapy.tools.groups.reset_times import parse_datetime

    if options.to_datetime is not None:
        return Reset(Scenario.TO_DATETIME, parse_datetime(options.to_datetime))
    return Reset(Scenario.TO_EARLIEST if options.to_earliest else Scenario.TO_LATEST)


_ACTIONS: Final[dict[str, Callable[[Cluster, ShareGroupsOptions, Environment, Failures], None]]] = {
    "list_": _list,
    "describe": _describe,
    "delete": _delete,
    "reset_offsets": _reset_offsets,
    "delete_offsets": _delete_offsets,
}

COMMAND: Final = Command(
    "share-groups",
    ShareGroupsOptions,
    run,
    reported_failures="the action failed, for one group or for all, or no broker responded",
    groups={
        "Connection": "timeout",
        "What to do": "list describe delete reset-offsets delete-offsets execute dry-run",
        "Which groups": "group all-groups",
        "What to show": "members offsets state verbose strict",
        "Which offsets": "topic all-topics to-earliest to-latest to-datetime",
    },
    examples={
        "List the share groups.": "--list {B}",
        "Show the start offsets and the lag of a group.": "--describe --group payments {B}",
        "Deliver all records again; the group must have no members.": (
            "--reset-offsets --group payments --topic orders --to-earliest --execute {B}"
        ),
        "Delete a group.": "--delete --group payments {B}",
    },
)
