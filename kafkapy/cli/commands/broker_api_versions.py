"""`kafkapy broker-api-versions`: Kafka's `kafka-broker-api-versions.sh`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.cli.framework.options import ClusterOptions, require
from kafkapy.cli.framework.output import Report, Table, show

if TYPE_CHECKING:
    from kafkapy.admin.api_versions import ApiSupport, BrokerApis


def run(options: ClusterOptions, env: Environment) -> ExitStatus:
    """Query every broker. A broker that does not respond is reported; as in Kafka, the command
    still succeeds.
    """
    from kafkapy.admin.api_versions import broker_api_versions

    require(options, "bootstrap_server")
    with options.connect(env) as cluster:
        found = list(broker_api_versions(cluster))
    show(env, _report(found), options.output)
    return ExitStatus.SUCCESS


def _report(found: list[BrokerApis]) -> Report:
    text: list[str] = []
    data, tables = [], []
    for each in found:
        if each.error is not None:
            text.append(f"{each.broker} -> ERROR: {each.error}")
        else:
            lines = [f"\t{_line(api)}" for api in each.apis]
            text += [f"{each.broker} -> (", *(f"{line}," for line in lines[:-1]), *lines[-1:], ")"]
        rows = [(a.key, a.name, _range(a), "" if a.usable is None else a.usable) for a in each.apis]
        tables.append(Table(("Key", "API", "Versions", "Usable"), rows, str(each.broker)))
        data.append(
            {
                "broker": each.broker.broker_id,
                "host": each.broker.host,
                "port": each.broker.port,
                "error": None if each.error is None else str(each.error),
                "apis": [
                    {"key": a.key, "name": a.name, "versions": a.offered, "usable": a.usable}
                    for a in each.apis
                ],
            }
        )
    return Report("broker-api-versions", data, text, tables)


def _line(api: ApiSupport) -> str:
    name = f"{api.name}({api.key})"
    if api.usable is not None:
        return f"{name}: {_range(api)} [usable: {api.usable}]"
    return f"{name}: {_range(api)}" + (f" [unusable: node {api.mismatch}]" if api.mismatch else "")


def _range(api: ApiSupport) -> str:
    if api.offered is None:
        return "UNSUPPORTED"
    low, high = api.offered
    return str(low) if low == high else f"{low} to {high}"


COMMAND: Final = Command(
    "broker-api-versions",
    ClusterOptions,
    run,
    reported_failures="a broker did not respond",
    examples={
        "Print the API versions of each broker.": "{B}",
        "Print them as JSON.": "--output json {B}",
    },
)
