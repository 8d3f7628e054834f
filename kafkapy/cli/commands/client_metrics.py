"""`kafkapy client-metrics`: Kafka's `kafka-client-metrics.sh` (`ClientMetricsCommand`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    ClusterOptions,
    flag,
    one_action,
    refuse,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.common.errors import ApiError

if TYPE_CHECKING:
    from kafkapy.admin.configs import Resource
    from kafkapy.client.cluster import Cluster

ACTIONS: Final = ("alter", "delete", "describe", "list_")


@dataclass
class ClientMetricsOptions(ClusterOptions):
    """The flags of `ClientMetricsCommandOptions`."""

    alter: bool = flag("Create or change a subscription.")
    delete: bool = flag("Delete a subscription.")
    describe: bool = flag("Show a subscription, or all.")
    list_: bool = flag("Show the names of all subscriptions.")
    name: str | None = value("The subscription.", metavar="NAME")
    generate_name: bool = flag("With --alter: create a subscription with a random name.")
    interval: str | None = value(
        "Milliseconds between pushes of a client; empty for the default, 300000.", metavar="MS"
    )
    match: list[str] = values(
        "The clients, by regular expressions of client_id, client_instance_id,"
        " client_software_name, client_software_version, client_source_address and"
        " client_source_port; empty for all clients.",
        metavar="K=V,K=V",
    )
    metrics: list[str] = values(
        "Prefixes of the names of metrics; * for all, empty for none.", metavar="P,P"
    )


def run(options: ClientMetricsOptions, env: Environment) -> ExitStatus:
    """Check the flags, then do the one action."""
    action = check(options)
    with options.connect(env) as cluster:
        try:
            report = _ACTIONS[action](cluster, options)
        except ApiError as error:
            raise CommandFailed(
                f"Error while executing client metrics command : {error.message}"
            ) from error
    show(env, report, options.output)
    return ExitStatus.SUCCESS


def check(options: ClientMetricsOptions) -> str:
    """Check the options. Returns the action.

    Raises:
        UsageError: the options are invalid; with the text of
            `ClientMetricsCommandOptions.checkArgs`.
    """
    action = one_action(options, ACTIONS, "--alter, --delete, --describe or --list.")
    if options.bootstrap_server is None:
        raise UsageError("--bootstrap-server must be specified.")
    alter_options = ("generate_name", "interval", "match", "metrics")
    refuse(options, "delete", *alter_options)
    refuse(options, "describe", *alter_options)
    refuse(options, "list_", "name", *alter_options)
    if options.alter and (options.name is not None) == options.generate_name:
        raise UsageError("One of --name or --generate-name must be specified with --alter.")
    if options.interval and not re.fullmatch(r"[+-]?[0-9]+", options.interval):
        message = "Invalid interval value. Enter an integer, or leave empty to reset."
        raise UsageError(message)
    if options.delete and options.name is None:
        raise UsageError("A client metrics resource name must be specified with --delete.")
    return action


def _alter(cluster: Cluster, options: ClientMetricsOptions) -> Report:
    from kafkapy.admin.configs import incremental_alter_configs
    from kafkapy.common.system import SystemRandom
    from kafkapy.common.uuid import Uuid

    name = str(Uuid.random(SystemRandom())) if options.name is None else options.name
    given = {
        "interval.ms": options.interval,
        "metrics": ",".join(options.metrics) if options.metrics else None,
        "match": ",".join(options.match) if options.match else None,
    }
    sets = {key: text for key, text in given.items() if text}
    deletes = [key for key, text in given.items() if text == ""]
    incremental_alter_configs(cluster, _resource(name), sets, deletes)
    return _change_report("Altered", name)


def _delete(cluster: Cluster, options: ClientMetricsOptions) -> Report:
    from kafkapy.admin.configs import incremental_alter_configs

    name = options.name or ""
    incremental_alter_configs(cluster, _resource(name), {}, list(_configs(cluster, name)))
    return _change_report("Deleted", name)


def _describe(cluster: Cluster, options: ClientMetricsOptions) -> Report:
    from kafkapy.admin.configs import client_metrics_names

    names = client_metrics_names(cluster)
    if options.name is not None and options.name not in names:
        line = f"The client metric resource {options.name} doesn't exist and doesn't have dynamic"
        return Report("client-metrics", [], [f"{line} config."])
    text, data, tables = [], [], []
    for name in names if options.name is None else [options.name]:
        configs = _configs(cluster, name)
        title = f"Client metrics configs for {name}"
        text += [f"{title} are:", *(f"  {key}={each}" for key, each in configs.items())]
        data.append({"name": name, "configs": configs})
        tables.append(Table(("Config", "Value"), list(configs.items()), title))
    return Report("client-metrics", data, text, tables)


def _list(cluster: Cluster, _: ClientMetricsOptions) -> Report:
    from kafkapy.admin.configs import client_metrics_names

    names = client_metrics_names(cluster)
    rows = [(name,) for name in names]
    return Report("client-metrics", names, names, [Table(("Name",), rows)])


def _configs(cluster: Cluster, name: str) -> dict[str, str | None]:
    """The configs of a subscription, with defaults, sorted by key."""
    from kafkapy.admin.configs import describe_configs

    resource = _resource(name)
    entries = describe_configs(cluster, [resource])[resource]
    return {entry.name: entry.value for entry in sorted(entries, key=lambda each: each.name)}


def _resource(name: str) -> Resource:
    from kafkapy.admin.configs import Resource
    from kafkapy.common.config_def import ResourceType

    return Resource(ResourceType.CLIENT_METRICS, name)


def _change_report(action: str, name: str) -> Report:
    text = [f"{action} client metrics config for {name}."]
    return Report("client-metrics", [{"name": name, "done": action.lower()}], text)


_ACTIONS: Final[Mapping[str, Callable[[Cluster, ClientMetricsOptions], Report]]] = {
    "alter": _alter,
    "delete": _delete,
    "describe": _describe,
    "list_": _list,
}

COMMAND: Final = Command(
    "client-metrics",
    ClientMetricsOptions,
    run,
    groups={
        "What to do": "alter delete describe list",
        "The subscription": "name generate-name interval match metrics",
    },
    examples={
        "Collect all metrics of producers, every ten seconds.": (
            "--alter --name producers --metrics org.apache.kafka.producer. --interval 10000 {B}"
        ),
        "Collect metrics of one client only.": (
            "--alter --name one --metrics '*' --match client_id=billing {B}"
        ),
        "Show all subscriptions.": "--describe {B}",
        "Delete a subscription.": "--delete --name producers {B}",
    },
)
