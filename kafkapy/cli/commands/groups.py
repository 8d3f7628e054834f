"""`kafkapy groups`: Kafka 4's `kafka-groups.sh` (`GroupsCommand`, KIP-1043)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import ClusterOptions, flag, one_action, refuse, value
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.common.consumer_protocol import CONSUMER_PROTOCOL_TYPE

if TYPE_CHECKING:
    from kafkapy.admin.groups import GroupListing

TYPES: Final = ("classic", "consumer", "share", "streams")
_COLUMNS: Final = ("GROUP", "TYPE", "PROTOCOL")
_WIDTH_MIN: Final = 20


@dataclass
class GroupsOptions(ClusterOptions):
    """The flags of `GroupsCommandOptions`."""

    list_: bool = flag("List the groups.")
    group_type: str | None = value(
        "Only groups of this type: classic, consumer, share, streams.", metavar="TYPE"
    )
    protocol: str | None = value("Only groups of this protocol type.", metavar="PROTOCOL")
    consumer: bool = flag("Only consumer groups, of the type classic too.")
    share: bool = flag("Only share groups.")
    streams: bool = flag("Only streams groups.")


def run(options: GroupsOptions, env: Environment) -> ExitStatus:
    """List the groups."""
    from kafkapy.admin.groups import list_all_groups

    check(options)
    with options.connect(env) as cluster:
        found = list_all_groups(cluster)
    show(env, _report([each for each in found if _is_wanted(each, options)]), options.output)
    return ExitStatus.SUCCESS


def check(options: GroupsOptions) -> None:
    """
    Raises:
        UsageError: the options are invalid; with the text of `GroupsCommandOptions.checkArgs`.
    """
    one_action(options, ("list_",), "--list.")
    refuse(options, "consumer", "share", "streams", "group_type", "protocol")
    refuse(options, "share", "streams", "group_type", "protocol")
    refuse(options, "streams", "group_type", "protocol")
    if options.group_type is not None and options.group_type.lower() not in TYPES:
        raise UsageError("--group-type must be a valid group type.")


def _is_wanted(group: GroupListing, options: GroupsOptions) -> bool:
    kind = group.type.lower() or "classic"  # old brokers do not return it
    if options.consumer:
        is_classic = kind == "classic" and group.protocol_type in (CONSUMER_PROTOCOL_TYPE, "")
        return is_classic or kind == "consumer"
    if options.share or options.streams:
        return kind == ("share" if options.share else "streams")
    return (options.group_type is None or kind == options.group_type.lower()) and (
        options.protocol is None or group.protocol_type == options.protocol
    )


def _report(groups: Sequence[GroupListing]) -> Report:
    rows = [(group.group_id, group.type, group.protocol_type) for group in groups]
    width = max([_WIDTH_MIN, *(len(cell) for row in rows for cell in row)])
    text = [" ".join(f"{cell:{width}}" for cell in row) for row in (_COLUMNS, *rows)]
    from kafkapy.cli.views.consumer_groups import listing_json

    return Report(
        "groups", listing_json(groups), text, [Table(("Group", "Type", "Protocol"), rows)]
    )


COMMAND: Final = Command(
    "groups",
    GroupsOptions,
    run,
    groups={"What to do": "list", "Which groups": "consumer share streams group-type protocol"},
    examples={
        "List the groups of all types.": "--list {B}",
        "List the share groups.": "--list --share {B}",
    },
)
