"""`kafkapy configs`: Kafka's `kafka-configs.sh` (`ConfigCommand`)."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.cli.commands import configs_quotas, configs_zookeeper
from kafkapy.cli.commands.configs_quotas import CLIENTS, IPS, QUOTA_KEYS, USERS
from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import ClusterOptions, flag, refuse, value, values
from kafkapy.cli.framework.output import Report, line_printer, show
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.java_numbers import is_natural

if TYPE_CHECKING:
    from kafkapy.admin.configs import Resource
    from kafkapy.client.cluster import Cluster
    from kafkapy.common.config_def import ResourceType
    from kafkapy.tools.config_changes import ConfigChange

TOPICS: Final = "topics"
BROKERS: Final = "brokers"
BROKER_LOGGERS: Final = "broker-loggers"
CLIENT_METRICS: Final = "client-metrics"
GROUPS: Final = "groups"
ENTITY_TYPES: Final = (
    *(TOPICS, CLIENTS, USERS, BROKERS, IPS),
    *(BROKER_LOGGERS, CLIENT_METRICS, GROUPS),
)
# Types that have a default entity.
TYPES_WITH_DEFAULT: Final = (USERS, CLIENTS, BROKERS, IPS)
SHORTHANDS: Final = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker_logger": BROKER_LOGGERS,
    "ip": IPS,
    "client_metrics": CLIENT_METRICS,
    "group": GROUPS,
}
DEFAULT_SHORTHANDS: Final = {
    "client_defaults": CLIENTS,
    "user_defaults": USERS,
    "broker_defaults": BROKERS,
    "ip_defaults": IPS,
}


class Entity(NamedTuple):
    """An entity: a type and a name. None means all entities of the type, "" the default entity."""

    type: str
    name: str | None


@dataclass
class ConfigsOptions(ClusterOptions):
    """The flags of `ConfigCommand`."""

    zookeeper: str | None = value(
        "Deprecated: ZooKeeper instead of --bootstrap-server.", metavar="HOST:PORT,.../CHROOT"
    )
    zk_tls_config_file: str | None = value(
        "With --zookeeper: a property file with zookeeper.ssl.* keys.", metavar="FILE"
    )
    describe: bool = flag("Show the configs of entities.")
    alter: bool = flag("Change the configs of an entity.")
    all_: bool = flag("With --describe: all configs, not only dynamic ones.")
    entity_type: list[str] = values("The type of entity.", metavar="TYPE", choices=ENTITY_TYPES)
    entity_name: list[str] = values(
        "The entity: topic, client id, user, broker id, address.", metavar="NAME"
    )
    entity_default: bool = flag("The default entity of its type.", stands_for="entity-name")
    topic: str | None = value("The topic.", metavar="NAME")
    client: str | None = value("The client id.", metavar="NAME")
    user: str | None = value("The user.", metavar="NAME")
    broker: str | None = value("The broker.", metavar="ID")
    broker_logger: str | None = value("The broker, for its loggers.", metavar="ID")
    ip: str | None = value("The address.", metavar="NAME")
    client_metrics: str | None = value("The metrics subscription.", metavar="NAME")
    group: str | None = value("The group.", metavar="ID")
    client_defaults: bool = flag("The defaults of all clients.")
    user_defaults: bool = flag("The defaults of all users.")
    broker_defaults: bool = flag("The defaults of all brokers.")
    ip_defaults: bool = flag("The defaults of all addresses.")
    add_config: str | None = value(
        "Configs to set; brackets group a value with commas.", metavar="K=V,K=[V,V]"
    )
    add_config_file: str | None = value("A property file of configs to set.", metavar="FILE")
    delete_config: list[str] = values("Configs to remove.", metavar="K,K")
    force: bool = flag("Accepted for compatibility: there is no confirmation.")


def run(options: ConfigsOptions, env: Environment) -> ExitStatus:
    """Check the flags, then describe or alter."""
    from kafkapy.cli.views.configs import completed_report
    from kafkapy.tools.config_changes import format_version_warnings

    entities = check(options)
    quotas = entities[0].type in QUOTA_KEYS
    failure: ApiError | None = None
    try:
        change = parse_change(options) if options.alter else None
        for line in format_version_warnings(change.sets) if change else ():
            line_printer(env, options.output)(line)
        if options.zookeeper is not None:
            return _by_zookeeper(options.zookeeper, entities, change, options, env)
        with options.connect(env) as cluster:
            if change is None and quotas:
                report, failure = configs_quotas.describe(cluster, entities)
            elif change is None:
                report, failure = _describe_resources(cluster, entities, options)
            else:
                alter = configs_quotas.alter if quotas else _alter_resource
                alter(cluster, entities, change)
                kind, name = entities[0]
                report = completed_report(kind, name or "", change.sets, change.deletes)
    except ConfigError as error:
        raise CommandFailed(str(error)) from error
    except ApiError as error:
        if error.code is ErrorCode.INVALID_CONFIG:
            raise CommandFailed(error.message) from error
        raise
    show(env, report, options.output)
    if failure is not None:  # the rest was printed
        raise failure
    return ExitStatus.SUCCESS


def _by_zookeeper(
    connect: str,
    entities: Sequence[Entity],
    change: ConfigChange | None,
    options: ConfigsOptions,
    env: Environment,
) -> ExitStatus:
    from kafkapy.client.properties import load_properties

    file = options.zk_tls_config_file
    properties = load_properties(file) if file is not None else {}
    if change is None:
        report = configs_zookeeper.describe(connect, entities, properties)
    else:
        report = configs_zookeeper.alter(connect, entities, change, properties)
    show(env, report, options.output)
    return ExitStatus.SUCCESS


def check(options: ConfigsOptions) -> list[Entity]:
    """Check the options. Returns the entities.

    Raises:
        UsageError: the options are invalid; with the text of `ConfigCommandOptions.checkArgs`.
    """
    if options.describe == options.alter:
        raise UsageError("Command must include exactly one action: --describe, --alter")
    if options.bootstrap_server is not None and options.zookeeper is not None:
        raise UsageError(
            "Only one of --bootstrap-server, --boostrap-controller, or --zookeeper can be specified"
        )
    if options.zookeeper is not None and options.all_:
        raise UsageError("--bootstrap-server must be specified for --all")
    if options.bootstrap_server is None and options.zookeeper is None:
        raise UsageError(
            "One of the required --bootstrap-server, --boostrap-controller, or --zookeeper"
            " arguments must be specified"
        )
    if options.bootstrap_server is not None and options.zk_tls_config_file is not None:
        raise UsageError(
            "Only the --zookeeper option can be used with the --zk-tls-config-file option."
        )
    refuse(options, "alter", "describe", "all_")
    refuse(options, "describe", "add_config", "delete_config", "add_config_file")
    entities = entities_of(options)
    _check_types(entities, by_zookeeper=options.zookeeper is not None)
    for entity in entities:
        _check_name(entity, options)
    if options.add_config is not None and options.add_config_file is not None:
        raise UsageError("Only one of --add-config or --add-config-file must be specified")
    changed = options.add_config, options.add_config_file, options.delete_config or None
    if options.alter and all(change is None for change in changed):
        raise UsageError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified"
            " with --alter"
        )
    return entities


def entities_of(options: ConfigsOptions) -> list[Entity]:
    """Types paired with names, in the order of the options. A type without a name means all.

    Raises:
        UsageError: both forms of entity options are used, a type is repeated, or types and names
            do not match.
    """
    short = [
        Entity(kind, getattr(options, name))
        for name, kind in SHORTHANDS.items()
        if getattr(options, name) is not None
    ] + [Entity(kind, "") for name, kind in DEFAULT_SHORTHANDS.items() if getattr(options, name)]
    _refuse_duplicates([*options.entity_type, *(entity.type for entity in short)])
    if short and (options.entity_type or options.entity_name):
        raise UsageError(
            "--entity-{type,name,default} should not be used in conjunction with specific entity"
            " flags"
        )
    if short:
        return short
    if len(options.entity_name) > len(options.entity_type) or (
        options.alter
        and options.entity_name
        and len(options.entity_name) < len(options.entity_type)
    ):
        raise UsageError("An entity name must be specified for every entity type")
    missing = [None] * (len(options.entity_type) - len(options.entity_name))
    names: list[str | None] = [*options.entity_name, *missing]
    return [Entity(kind, name) for kind, name in zip(options.entity_type, names, strict=True)]


def _refuse_duplicates(types: Sequence[str]) -> None:
    duplicates = sorted({kind for kind in types if types.count(kind) > 1})
    if duplicates:
        raise UsageError(f"Duplicate entity type(s) specified: {','.join(duplicates)}")


def _check_types(entities: list[Entity], *, by_zookeeper: bool) -> None:
    types = [entity.type for entity in entities]
    known = configs_zookeeper.ENTITY_TYPES if by_zookeeper else ENTITY_TYPES
    connection_option = (
        "--zookeeper" if by_zookeeper else "--bootstrap-server or --bootstrap-controller"
    )
    for kind in types:
        if kind not in known:
            raise UsageError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(known)}"
                f" with a {connection_option} argument"
            )
    if not types:
        raise UsageError("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise UsageError("Only 'users' and 'clients' entity types may be specified together")


def _check_name(entity: Entity, options: ConfigsOptions) -> None:
    kind, name = entity
    if options.alter and name is None:
        if kind in TYPES_WITH_DEFAULT:
            raise UsageError(
                "an entity-name or default entity must be specified with --alter of users,"
                " clients, brokers or ips"
            )
        raise UsageError(f"an entity name must be specified with --alter of {kind}")
    if options.alter and name == "" and kind not in TYPES_WITH_DEFAULT:
        raise UsageError(f"an entity name must be specified with --alter of {kind}")
    if kind == BROKER_LOGGERS and not name:
        raise UsageError("an entity name must be specified with --describe of broker-loggers")
    if kind in (BROKERS, BROKER_LOGGERS) and name and not is_natural(name):
        raise UsageError(
            f"The entity name for {kind} must be a valid integer broker id, but it is: {name}"
        )
    if kind == IPS and name and not _is_address(name):
        raise UsageError(
            f"The entity name for ips must be a valid IP or resolvable host, but it is: {name}"
        )


def _is_address(name: str) -> bool:
    """Whether the host resolves, as Kafka's `DynamicConfig.Ip.isValidIpEntity`."""
    try:
        socket.getaddrinfo(name, None)
    except (OSError, ValueError):  # ValueError: no IDNA form, or a NUL
        return False
    return True


def parse_change(options: ConfigsOptions) -> ConfigChange:
    """Parse the configs to set and to delete.

    Raises:
        ConfigError: a value, or the property file, is malformed.
    """
    from kafkapy.client.properties import load_properties
    from kafkapy.tools.config_changes import (
        ConfigChange,
        parse_add_config,
        parse_delete_config,
        validate_keys,
    )

    sets: dict[str, str] = {}
    if options.add_config_file is not None:
        sets = load_properties(options.add_config_file)
        validate_keys(sets)
    elif options.add_config is not None:
        sets = parse_add_config(options.add_config)
    return ConfigChange(sets, parse_delete_config(options.delete_config))


def _describe_resources(
    cluster: Cluster, entities: Sequence[Entity], options: ConfigsOptions
) -> tuple[Report, ApiError | None]:
    """Describe one named topic, broker, broker logger, metrics subscription or group, or all. The
    error is that of a resource that was not returned, while others were.

    Raises:
        ApiError: no resource was returned.
    """
    from kafkapy.admin.configs import describe_configs_partly, dynamic_only
    from kafkapy.cli.views.configs import resources_report

    resources = _resources(cluster, entities[0])
    found, failure = describe_configs_partly(cluster, resources)
    if failure is not None and not found:
        raise failure
    shown = {
        r.name: found[r] if options.all_ else dynamic_only(found[r], r)
        for r in resources
        if r in found
    }
    kind, name = entities[0]
    if kind in (CLIENT_METRICS, GROUPS) and name and not shown[name]:
        line = f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config."
        return Report("configs", [], [line]), None
    return resources_report(entities[0].type, shown, options.all_), failure


def _alter_resource(cluster: Cluster, entities: Sequence[Entity], change: ConfigChange) -> None:
    """Change one resource. A key to delete must be set, or nothing is changed."""
    from kafkapy.admin.configs import (
        Resource,
        describe_configs,
        dynamic_only,
        incremental_alter_configs,
    )

    entity = entities[0]
    resource = Resource(_resource_type(entity.type), entity.name or "")
    present = describe_configs(cluster, [resource])[resource]
    names = {entry.name for entry in dynamic_only(present, resource)}
    if entity.type == BROKER_LOGGERS:
        unknown = [name for name in (*change.sets, *change.deletes) if name not in names]
        if unknown:
            raise ConfigError(f"Invalid broker logger(s): {','.join(unknown)}")
    change.refuse_unknown_deletes(names)
    incremental_alter_configs(cluster, resource, change.sets, change.deletes)


def _resource_type(kind: str) -> ResourceType:
    from kafkapy.common.config_def import ResourceType

    return {
        TOPICS: ResourceType.TOPIC,
        BROKERS: ResourceType.BROKER,
        BROKER_LOGGERS: ResourceType.BROKER_LOGGER,
        CLIENT_METRICS: ResourceType.CLIENT_METRICS,
        GROUPS: ResourceType.GROUP,
    }[kind]


def _resources(cluster: Cluster, entity: Entity) -> list[Resource]:
    """The named resource, or all of its type. After all brokers comes the default of brokers."""
    from kafkapy.admin.configs import Resource, client_metrics_names, group_names

    kind = _resource_type(entity.type)
    if entity.name is not None:
        return [Resource(kind, entity.name)]
    if entity.type == TOPICS:
        return [Resource(kind, name) for name in sorted(cluster.metadata(None).topics)]
    if entity.type == BROKERS:
        brokers = sorted(cluster.metadata([]).brokers)
        return [*(Resource(kind, str(broker)) for broker in brokers), Resource(kind, "")]
    if entity.type == CLIENT_METRICS:
        return [Resource(kind, name) for name in client_metrics_names(cluster)]
    if entity.type == GROUPS:
        return [Resource(kind, name) for name in group_names(cluster)]
    return [Resource(kind, "")]


def _without_secrets(word: str) -> str:
    from kafkapy.cli.views.configs import word_without_secrets

    return word_without_secrets(word)


COMMAND: Final = Command(
    "configs",
    ConfigsOptions,
    run,
    help="Describe and alter dynamic configs of topics, brokers, clients, users, groups and more.",
    failure="Error while executing config command with args '{words}': {}",
    shown_word=_without_secrets,
    refused={
        "bootstrap-controller": "kafkapy sends no requests to KRaft controllers; use"
        " --bootstrap-server"
    },
    groups={
        "Connection": "zookeeper zk-tls-config-file",
        "What to do": "describe alter add-config add-config-file delete-config all force",
        "Entities": (
            "topic broker broker-defaults broker-logger user user-defaults client client-defaults"
            " ip ip-defaults client-metrics group entity-type entity-name entity-default"
        ),
    },
    examples={
        "Show the configs that a topic overrides.": "--describe --topic orders {B}",
        "Keep the records of a topic for a day.": (
            "--alter --topic orders --add-config retention.ms=86400000 {B}"
        ),
        "Restore the cluster's default.": (
            "--alter --topic orders --delete-config retention.ms {B}"
        ),
        "Limit the writes of a user to 1 MiB a second.": (
            "--alter --user alice --add-config producer_byte_rate=1048576 {B}"
        ),
    },
)
