"""`kafkapy consumer-groups`: Kafka's `kafka-consumer-groups.sh` (`ConsumerGroupCommand`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafkapy.cli.commands.consumer_groups_options import SCENARIOS, ConsumerGroupsOptions, check
from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.failures import Failures
from kafkapy.cli.framework.options import OutputFormat, is_given, option_name, timeout_of
from kafkapy.cli.framework.output import Report, show
from kafkapy.common.comma_separated import java_split
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode, KafkapyError
from kafkapy.common.patterns import InvalidPattern, compile_linear
from kafkapy.common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafkapy.admin.groups import GroupDescription
    from kafkapy.client.cluster import Cluster
    from kafkapy.tools.groups.group_rows import GroupOffsetRow
    from kafkapy.tools.groups.offset_csv import GroupOffsets
    from kafkapy.tools.groups.offset_reset import Offsets, Reset, TopicScope

STATES: Final = (
    *("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty"),
    *("Assigning", "Reconciling"),
)
_REGEX_MEMORY_BYTES: Final = 2 << 20  # that of brokers
REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
NOT_EXECUTED: Final = (
    "WARN: No action will be performed as the --execute option is missing. In a future major"
    " release, the default behavior of this command will be to prompt the user before executing the"
    " reset rather than doing a dry run. You should add the --dry-run option explicitly if you are"
    " scripting this command and want to keep the current default behavior without prompting."
)


def run(options: ConsumerGroupsOptions, env: Environment) -> ExitStatus:
    """Check the flags, then do the one action. Most failures print a line on stdout and exit 0."""
    action = check(options)
    if options.validate_regex is not None:
        return _validate_regex(options.validate_regex, options, env)
    is_quiet = options.output is OutputFormat.json or options.export
    failures = Failures(env, is_quiet=is_quiet, strict=options.strict)
    if options.reset_offsets and not options.execute and not options.dry_run:
        env.warn(NOT_EXECUTED)
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
        failures.report(f"Executing consumer group command failed due to {error}", error)
    return failures.status


def _validate_regex(regex: str, options: ConsumerGroupsOptions, env: Environment) -> ExitStatus:
    reason = None
    try:
        compile_linear(regex, _REGEX_MEMORY_BYTES)
        line = f"The regular expression `{regex}` is valid."
    except InvalidPattern as error:
        reason = str(error)
        line = f"The regular expression `{regex}` is invalid: {reason}."
    data = {"regex": regex, "is_valid": reason is None, "reason": reason}
    show(env, Report("consumer-groups", [data], [line]), options.output)
    return ExitStatus.FAILURE if reason and options.strict else ExitStatus.SUCCESS


def _list(
    cluster: Cluster, options: ConsumerGroupsOptions, env: Environment, failures: Failures
) -> None:
    from kafkapy.admin.groups import GROUP_TYPES, list_groups
    from kafkapy.cli.views.consumer_groups import list_report

    states = _parse_names(options.state, STATES, "Invalid state list '{}'. Valid states are: ")
    types = _parse_names(options.type, GROUP_TYPES, "Invalid types list '{}'. Valid types are: ")
    found = list_groups(cluster, states, types)
    with_states, with_types = options.state is not None, options.type is not None
    show(env, list_report(found, states=with_states, types=with_types), options.output)


def _parse_names(words: str | None, known: Sequence[str], error_format: str) -> list[str]:
    """The known words in a comma-separated list, which may use upper and lower case.

    Raises:
        UsageError: a word is unknown.
    """
    by_lower = {name.lower(): name for name in known}
    wanted = [word.strip().lower() for word in java_split(words)] if words else []
    if any(word not in by_lower for word in wanted):
        raise UsageError(error_format.format(words) + ", ".join(known))
    return [by_lower[word] for word in wanted]


def _groups(cluster: Cluster, options: ConsumerGroupsOptions) -> list[str]:
    from kafkapy.admin.groups import list_groups

    if options.all_groups:
        return [group.group_id for group in list_groups(cluster)]
    return list(dict.fromkeys(options.group))


def _describe(
    cluster: Cluster, options: ConsumerGroupsOptions, env: Environment, failures: Failures
) -> None:
    from kafkapy.admin.groups import describe_group
    from kafkapy.cli.views.consumer_groups import members_report, offsets_report, states_report
    from kafkapy.tools.groups.group_rows import member_rows

    found = [describe_group(cluster, group) for group in sorted(_groups(cluster, options))]
    shown = [group for group in found if _exists(group, env, failures)]
    if options.state is not None:
        report = states_report(shown, verbose=options.verbose)
    elif options.members:
        rows = {group.group_id: member_rows(group) for group in shown}
        report = members_report(rows, verbose=options.verbose)
    else:
        report = offsets_report(_offsets(cluster, shown))
    show(env, report, options.output)


def _exists(group: GroupDescription, env: Environment, failures: Failures) -> bool:
    """Report a group that is missing, empty or rebalancing. Returns whether the group exists."""
    if group.state == "Dead":
        failures.report(f"Consumer group '{group.group_id}' does not exist.")
        return False
    if group.state == "Empty":
        env.warn(f"\nConsumer group '{group.group_id}' has no active members.")
    elif group.state in REBALANCING:
        env.warn(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.")
    return True


def _offsets(
    cluster: Cluster, groups: Sequence[GroupDescription]
) -> dict[str, list[GroupOffsetRow]]:
    """The rows of each group."""
    from kafkapy.admin.group_offsets import committed_offsets
    from kafkapy.client.offsets import LATEST_TIMESTAMP
    from kafkapy.tools.groups.group_rows import offset_rows, partitions_of

    committed = {
        group.group_id: {
            tp: each.offset for tp, each in committed_offsets(cluster, group.group_id).items()
        }
        for group in groups
    }
    wanted = {tp for group in groups for tp in partitions_of(group, committed[group.group_id])}
    # One call for all groups: it waits until the API timeout for partitions without a leader.
    results = cluster.list_offsets(dict.fromkeys(sorted(wanted), LATEST_TIMESTAMP))
    # A partition without a leader returns an error instead of its end.
    ends = {tp: result.offset for tp, result in results.items() if not result.error}
    return {group.group_id: offset_rows(group, committed[group.group_id], ends) for group in groups}


def _delete(
    cluster: Cluster, options: ConsumerGroupsOptions, env: Environment, failures: Failures
) -> None:
    from kafkapy.admin.groups import delete_groups
    from kafkapy.cli.views.consumer_groups import deleted_groups_report

    results = delete_groups(cluster, _groups(cluster, options))
    if any(results.values()):
        failures.add()
    show(env, deleted_groups_report(results), options.output)


def _delete_offsets(
    cluster: Cluster, options: ConsumerGroupsOptions, env: Environment, failures: Failures
) -> None:
    from kafkapy.admin.group_offsets import delete_offsets
    from kafkapy.cli.views.consumer_groups import deleted_offsets_report

    if len(options.group) > 1:
        raise UsageError("Found multiple arguments for option group, but you asked for only one")
    group = options.group[0]
    results: dict[TopicPartition, ApiError | None] = {}
    partitions: list[TopicPartition] = []
    for scope in _scopes(options.topic):
        try:
            partitions += _expand_scopes(cluster, [scope])
        except ApiError as error:
            results[TopicPartition(scope.topic, -1)] = error
    try:
        results |= delete_offsets(cluster, group, partitions)
        summary = _DELETE_SUCCESS.format(topics=", ".join(options.topic), group=group)
        if any(results.values()):
            summary = "\nError: Encounter some partition level error, see the follow-up details:"
    except ApiError as error:
        results |= dict.fromkeys(partitions, error)
        reason = _DELETE_ERRORS.get(error.code, "Encounter some unknown error: {error}")
        summary = "\nError: " + reason.format(group=group, error=error)
    if any(results.values()):
        failures.add()
    show(env, deleted_offsets_report(summary, results), options.output)


_DELETE_SUCCESS: Final = "Request succeed for deleting offsets with topic {topics} group {group}"
_DELETE_ERRORS: Final = {
    ErrorCode.INVALID_GROUP_ID: "'{group}' is not valid.",
    ErrorCode.GROUP_ID_NOT_FOUND: "'{group}' does not exist.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Access to '{group}' is not authorized.",
    ErrorCode.NON_EMPTY_GROUP: (
        "Deleting offsets of a consumer group '{group}' is forbidden if the group is not empty."
    ),
}


def _reset_offsets(
    cluster: Cluster, options: ConsumerGroupsOptions, env: Environment, failures: Failures
) -> None:
    """Plan the reset of every group; with --execute, commit the new offsets."""
    from kafkapy.tools.groups.group_reset import commit, plan_groups
    from kafkapy.tools.groups.offset_csv import NegativeOffset

    try:
        reset, file = _reset(options)
    except NegativeOffset as error:
        raise UsageError(str(error)) from error
    scopes = None if options.all_topics else _scopes(options.topic)
    groups = _groups(cluster, options)
    try:
        planned = plan_groups(cluster, groups, reset, scopes, file, failures.report, env.warn)
    except ConfigError as error:
        # The reset is impossible. Kafka's tool exits with 1 for this failure.
        raise UsageError(str(error)) from error
    if options.execute:
        committed_groups: dict[str, Offsets] = {}
        try:
            commit(cluster, planned, committed_groups)
        except (ApiError, KeyboardInterrupt):
            if committed_groups:
                _show_reset(committed_groups, options, env)
            raise
    _show_reset(planned, options, env)


def _show_reset(
    offsets: Mapping[str, Offsets], options: ConsumerGroupsOptions, env: Environment
) -> None:
    from kafkapy.cli.views.consumer_groups import reset_report
    from kafkapy.tools.groups.offset_csv import format_offsets

    if options.export and options.output is not OutputFormat.json:
        env.line(format_offsets(offsets, grouped=options.all_groups or len(options.group) != 1))
    else:
        show(env, reset_report(offsets, executed=options.execute), options.output)


def _reset(options: ConsumerGroupsOptions) -> tuple[Reset, GroupOffsets]:
    """The scenario, and the offsets of its file.

    Raises:
        ConfigError: a time, or the file, is malformed.
    """
    import time

    from kafkapy.tools.groups.offset_csv import load_offsets
    from kafkapy.tools.groups.offset_reset import Reset, Scenario
    from kafkapy.tools.groups.reset_times import parse_datetime, parse_duration

    name = next(name for name in SCENARIOS if is_given(options, name))
    scenario = Scenario(option_name(name))
    given = getattr(options, name)
    if scenario is Scenario.FROM_FILE:
        return Reset(scenario), load_offsets(given, options.group)
    if scenario is Scenario.TO_DATETIME:
        return Reset(scenario, parse_datetime(given)), {}
    if scenario is Scenario.BY_DURATION:
        return Reset(scenario, int(time.time() * 1000) - parse_duration(given)), {}
    return Reset(scenario, given if scenario in _NUMBER_SCENARIOS else 0), {}


_NUMBER_SCENARIOS: Final = ("to-offset", "shift-by")


def _scopes(words: Sequence[str]) -> list[TopicScope]:
    """
    Raises:
        UsageError: a word is not TOPIC or TOPIC:0,1.
    """
    from kafkapy.tools.groups.offset_reset import parse_topic_scope

    try:
        return [parse_topic_scope(word) for word in words]
    except ConfigError as error:
        raise UsageError(str(error)) from error


def _expand_scopes(cluster: Cluster, scopes: Sequence[TopicScope]) -> list[TopicPartition]:
    from kafkapy.tools.groups.group_reset import topic_partitions
    from kafkapy.tools.groups.offset_reset import expand

    return expand(scopes, lambda topic: topic_partitions(cluster, topic))


_ACTIONS: Final[
    dict[str, Callable[[Cluster, ConsumerGroupsOptions, Environment, Failures], None]]
] = {
    "list_": _list,
    "describe": _describe,
    "delete": _delete,
    "reset_offsets": _reset_offsets,
    "delete_offsets": _delete_offsets,
}

COMMAND: Final = Command(
    "consumer-groups",
    ConsumerGroupsOptions,
    run,
    reported_failures="the action failed, for one group or for all, or no broker responded",
    groups={
        "Connection": "timeout",
        "What to do": (
            "list describe delete reset-offsets delete-offsets execute dry-run export"
            " validate-regex"
        ),
        "Which groups": "group all-groups",
        "What to show": "members offsets state type verbose strict",
        "Which offsets": (
            "topic all-topics to-earliest to-latest to-current to-offset shift-by to-datetime"
            " by-duration from-file"
        ),
    },
    examples={
        "List the groups.": "--list {B}",
        "Show the committed offsets and the lag of a group.": "--describe --group billing {B}",
        ("Show the new offsets of a reset; --execute commits them if the group has no members."): (
            "--reset-offsets --group billing --topic orders --to-earliest --dry-run {B}"
        ),
        "Delete a group.": "--delete --group billing {B}",
    },
)
