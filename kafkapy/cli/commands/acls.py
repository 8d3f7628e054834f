"""`kafkapy acls`: Kafka's `kafka-acls.sh` (`AclCommand`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    ClusterOptions,
    OutputFormat,
    flag,
    one_action,
    refuse,
    require,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, Table, line_printer, show
from kafkapy.common.errors import ConfigError

if TYPE_CHECKING:
    from kafkapy.admin.acls import Acls
    from kafkapy.client.cluster import Cluster
    from kafkapy.security.acls import AccessControlEntry, ResourcePattern

ACTIONS: Final = ("add", "remove", "list_")
PATTERNS: Final = ("literal", "prefixed", "any", "match")
RESOURCES: Final = ("topic", "group", "transactional_id", "delegation_token", "user_principal")
NO_PRINCIPAL: Final = (
    "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
)
NO_RESOURCE: Final = (
    "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or"
    " --delegation-token <Delegation Token ID>"
)


@dataclass
class AclsOptions(ClusterOptions):
    """The flags of `AclCommandOptions`."""

    add: bool = flag("Add entries.")
    remove: bool = flag("Remove entries.")
    list_: bool = flag("List entries.")
    topic: list[str] = values("A topic; * means all topics.", metavar="TOPIC")
    group: list[str] = values("A group; * means all groups.", metavar="GROUP")
    transactional_id: list[str] = values("A transactional id; * means all ids.", metavar="ID")
    delegation_token: list[str] = values("A delegation token.", metavar="ID")
    user_principal: list[str] = values("A user, for delegation tokens.", metavar="PRINCIPAL")
    cluster: bool = flag("The cluster itself.")
    resource_pattern_type: str = value(
        "The type of the resource patterns.", metavar="TYPE", default="literal", choices=PATTERNS
    )
    allow_principal: list[str] = values("A principal to allow.", metavar="TYPE:NAME")
    deny_principal: list[str] = values("A principal to deny.", metavar="TYPE:NAME")
    allow_host: list[str] = values(
        "A host of the allowed principals; default: all hosts.", metavar="HOST"
    )
    deny_host: list[str] = values(
        "A host of the denied principals; default: all hosts.", metavar="HOST"
    )
    operation: list[str] = values("An operation; default: All.", metavar="OPERATION")
    producer: bool = flag("The operations of a producer: Write, Describe and Create on topics.")
    idempotent: bool = flag("With --producer: also IdempotentWrite on the cluster.")
    consumer: bool = flag(
        "The operations of a consumer: Read and Describe on topics, Read on groups."
    )
    principal: list[str] = values(
        "With --list: only entries of this principal.", metavar="TYPE:NAME"
    )
    force: bool = flag("Remove entries without confirmation.")


def run(options: AclsOptions, env: Environment) -> ExitStatus:
    """Check the flags, then do the one action."""
    action = check(options)
    with options.connect(env) as cluster:
        _ACTIONS[action](cluster, options, env)
    return ExitStatus.SUCCESS


def check(options: AclsOptions) -> str:
    """Check the options. Returns the action.

    Raises:
        UsageError: the options are invalid; with the text of `AclCommandOptions.checkArgs`.
    """
    require(options, "bootstrap_server")
    action = one_action(options, ACTIONS, "--list, --add, --remove. ")
    principal_options = ("allow_host", "allow_principal", "deny_host", "deny_principal")
    refuse(options, "list_", "producer", "consumer", *principal_options)
    refuse(options, "producer", "operation", "deny_principal", "deny_host")
    refuse(options, "consumer", "operation", "deny_principal", "deny_host")
    if options.principal and not options.list_:
        raise UsageError("The --principal option is only available if --list is set")
    if options.producer and not options.topic:
        raise UsageError("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        raise UsageError("The --idempotent option is only available if --producer is set")
    others = not options.producer and (options.cluster or options.transactional_id)
    if options.consumer and (not options.topic or not options.group or others):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or"
            " --transactional-id option should be specified."
        )
    if options.resource_pattern_type.lower() not in PATTERNS:
        raise UsageError(
            f"Unknown resourcePatternType {options.resource_pattern_type}: one of"
            f" {', '.join(PATTERNS)}"
        )
    if options.add and options.resource_pattern_type.lower() in ("any", "match"):
        kind = options.resource_pattern_type.upper()
        raise UsageError(
            f"A '--resource-pattern-type' value of '{kind}' is not valid when adding acls."
        )
    return action


def _add(cluster: Cluster, options: AclsOptions, env: Environment) -> None:
    from kafkapy.admin.acls import create_acls

    plan = _plan(options)
    if not all(plan.values()):
        raise UsageError(NO_PRINCIPAL)
    added: Acls = {}
    try:
        for resource, entries in plan.items():
            if options.output is not OutputFormat.json:
                _write(env, _block("Adding ACLs for", resource, entries))
            create_acls(cluster, resource, entries)
            added[resource] = entries
    finally:  # print the added entries even if a later request failed
        if options.output is OutputFormat.json:
            show(env, Report("acls", _json(added), []), options.output)


def _remove(cluster: Cluster, options: AclsOptions, env: Environment) -> None:
    from kafkapy.admin.acls import delete_acls

    plan = _plan(options)
    removed = []
    try:
        for resource, entries in plan.items():
            if options.force or _confirmed(env, options, resource, entries):
                count = delete_acls(cluster, resource, entries)
                removed.append({**_resource_json(resource), "removed": count})
    finally:  # print the counts even if a later request failed
        show(env, Report("acls", removed, []), options.output)


def _list(cluster: Cluster, options: AclsOptions, env: Environment) -> None:
    from kafkapy.admin.acls import describe_acls
    from kafkapy.security.acls import ANY_ENTRY, ANY_RESOURCE
    from kafkapy.tools.acl_plan import checked_principal

    principals = list(dict.fromkeys(map(checked_principal, options.principal)))
    filters = _resources(options) or [ANY_RESOURCE]
    found: Acls = {}
    for resource in filters:
        found |= describe_acls(cluster, resource, ANY_ENTRY)
    text: list[str] = []
    shown: Acls = {} if principals else found
    for principal in principals:
        text.append(f"ACLs for principal `{principal}`")
        principal_acls = {
            r: [e for e in each if e.principal == principal] for r, each in found.items()
        }
        principal_acls = {
            resource: entries for resource, entries in principal_acls.items() if entries
        }
        text += _blocks(principal_acls)
        for resource, entries in principal_acls.items():
            shown[resource] = [*shown.get(resource, []), *entries]
    text += [] if principals else _blocks(found)
    rows = [
        (
            r.kind.name,
            r.name,
            r.pattern.name,
            e.principal,
            e.host,
            e.operation.name,
            e.permission.name,
        )
        for r, entries in shown.items()
        for e in entries
    ]
    columns = ("Resource", "Name", "Pattern", "Principal", "Host", "Operation", "Permission")
    show(env, Report("acls", _json(shown), text, [Table(columns, rows)]), options.output)


def _plan(options: AclsOptions) -> Acls:
    """The entries to add or to remove, by resource.

    Raises:
        UsageError: no resource is named, or a resource does not support an operation.
        CommandFailed: a principal is malformed.
    """
    from kafkapy.tools import acl_plan

    resources = _resources(options)
    if not resources:
        raise UsageError(NO_RESOURCE)
    principals = acl_plan.Principals(
        options.allow_principal, options.deny_principal, options.allow_host, options.deny_host
    )
    words = [acl_plan.parse_operation(word) for word in options.operation or ["All"]]
    roles = options.producer or options.consumer
    try:
        operations = [] if roles else acl_plan.check_operations(resources, words)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    try:
        if roles:
            return acl_plan.planned_role_entries(
                resources,
                principals,
                producer=options.producer,
                consumer=options.consumer,
                idempotent=options.idempotent,
            )
        return acl_plan.planned_entries(resources, principals, operations)
    except ConfigError as error:
        raise CommandFailed(COMMAND.failure.format(error)) from error


def _resources(options: AclsOptions) -> list[ResourcePattern]:
    from kafkapy.security.acls import CLUSTER_NAME, PatternType, ResourceKind, ResourcePattern

    pattern = PatternType[options.resource_pattern_type.upper()]
    kinds = {"user_principal": ResourceKind.USER}
    found = [
        ResourcePattern(kinds.get(field) or ResourceKind[field.upper()], name.strip(), pattern)
        for field in RESOURCES
        for name in getattr(options, field)
    ]
    if options.cluster:
        found.append(ResourcePattern(ResourceKind.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    return found


def _block(
    heading: str, resource: ResourcePattern, entries: Iterable[AccessControlEntry]
) -> list[str]:
    """Kafka's lines: a space before the first entry and behind the last, then an empty line."""
    lines = "\n".join(f"\t{entry}" for entry in entries)
    return [f"{heading} resource `{resource}`: ", f" {lines} ", ""]


def _blocks(found: Acls) -> list[str]:
    return [
        line
        for resource, entries in found.items()
        for line in _block("Current ACLs for", resource, entries)
    ]


def _write(env: Environment, lines: Iterable[str]) -> None:
    for line in lines:
        env.line(line)


def _confirmed(
    env: Environment,
    options: AclsOptions,
    resource: ResourcePattern,
    entries: list[AccessControlEntry],
) -> bool:
    """Ask for confirmation, as Kafka's tool does. Only y means yes."""
    shown = str(resource).replace("ResourcePattern(", "ResourcePatternFilter(")
    if entries:
        lines = "\n".join(f"\t{entry}" for entry in entries)
        question = f"remove ACLs: \n {lines} \n from resource filter `{shown}`? (y/n)"
    else:
        question = f"delete all ACLs for resource filter `{shown}`? (y/n)"
    # On stdout, as in Kafka's tool, unless stdout must contain only JSON.
    print_line = line_printer(env, options.output)
    print_line(f"Are you sure you want to {question}")
    env.stdout.flush()
    return env.stdin.readline().strip().lower() == "y"


def _resource_json(resource: ResourcePattern) -> dict[str, Any]:
    return {
        "resource_type": resource.kind.name,
        "name": resource.name,
        "pattern_type": resource.pattern.name,
    }


def _json(found: Acls) -> list[dict[str, Any]]:
    return [
        {
            **_resource_json(resource),
            "principal": entry.principal,
            "host": entry.host,
            "operation": entry.operation.name,
            "permission": entry.permission.name,
        }
        for resource, entries in found.items()
        for entry in entries
    ]


_ACTIONS: Final[dict[str, Callable[[Cluster, AclsOptions, Environment], None]]] = {
    "add": _add,
    "remove": _remove,
    "list_": _list,
}

COMMAND: Final = Command(
    "acls",
    AclsOptions,
    run,
    failure="Error while executing ACL command: {}",
    refused=dict.fromkeys(
        ("authorizer", "authorizer-properties", "zk-tls-config-file"),
        "it loads a Java authorizer that writes ACLs without the brokers, which Kafka deprecated;"
        " use --bootstrap-server",
    ),
    groups={
        "What to do": "add remove list force",
        "Resources": (
            "topic group transactional-id delegation-token user-principal cluster"
            " resource-pattern-type"
        ),
        "Principals, hosts and operations": (
            "allow-principal deny-principal allow-host deny-host operation producer idempotent"
            " consumer principal"
        ),
    },
    examples={
        "Allow a user to write to a topic.": (
            "--add --allow-principal User:alice --producer --topic orders {B}"
        ),
        "Allow a user to read it with a group.": (
            "--add --allow-principal User:bob --consumer --topic orders --group billing {B}"
        ),
        "List the entries of a topic.": "--list --topic orders {B}",
        "Remove all entries of a user for a topic, without confirmation.": (
            "--remove --allow-principal User:alice --topic orders --force {B}"
        ),
    },
)
