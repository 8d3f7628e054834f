"""`kafkapy cluster`: runs ZooKeeper and some brokers on this machine, for trials; and the actions
of Kafka's `kafka-cluster.sh` (`ClusterTool`) for any cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    ClusterOptions,
    OutputFormat,
    flag,
    refuse_other_actions,
    require,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, Table, show
from kafkapy.cli.framework.termination import terminable
from kafkapy.common.java_numbers import is_natural
from kafkapy.tools.zookeeper.implementations import Implementation

if TYPE_CHECKING:
    from kafkapy.client.metadata import Broker, ClusterMetadata
    from kafkapy.tools.local.cluster_layout import ClusterLayout
    from kafkapy.tools.local.local_cluster import LocalCluster, Member

DIRECTORY: Final = "/tmp/kafkapy-cluster"
BROKERS: Final = 3
BASE_PORT: Final = 9092
LOCAL_VERBS: Final = ("start", "status", "stop", "kill", "restart")
REMOTE_VERBS: Final = ("cluster-id", "list-endpoints", "unregister")
VERBS: Final = (*LOCAL_VERBS, *REMOTE_VERBS)
COLUMNS: Final = ("Server", "Address", "State", "Pid", "Controller", "Leaders")
ENDPOINT_COLUMNS: Final = ("ID", "HOST", "PORT", "RACK", "ENDPOINT_TYPE")
_BROKER_VERBS: Final = ("kill", "restart")


@dataclass
class LocalClusterOptions(ClusterOptions):
    """The flags of all verbs."""

    words: list[str] = values(
        "The action, and the id of the broker to kill or restart.",
        metavar="start|status|stop|kill ID|restart ID|cluster-id|list-endpoints|unregister",
        choices=VERBS,
    )
    dir: str = value("The directory of the cluster.", metavar="DIR", default=DIRECTORY)
    brokers: int | None = value(
        f"the number of brokers; a cluster can grow. Default: its number, or {BROKERS}.",
        actions=("start",),
        metavar="N",
    )
    base_port: int | None = value(
        "the port of the first broker; the other brokers have the ports after it, ZooKeeper"
        " the port before it. 0 selects free ports."
        f" Default: {BASE_PORT}; a cluster keeps its ports.",
        actions=("start",),
        metavar="PORT",
    )
    zookeeper: Implementation | None = value(
        "the ZooKeeper of a new cluster. Default: kafkapy, which needs no Java; a cluster"
        " keeps its own.",
        actions=("start",),
        metavar="kafkapy|apache",
        choices=Implementation,
    )
    bootstrap_server: str | None = value(
        "the brokers to connect to first.",
        actions=("cluster-id", "list-endpoints", "unregister"),
        metavar="HOST:PORT,...",
        short="b",
    )
    config: str | None = value(
        "a property file for the connection.",
        actions=("cluster-id", "list-endpoints", "unregister"),
        metavar="FILE",
        short="c",
    )
    include_fenced_brokers: bool = flag(
        "also those brokers of a KRaft cluster that are down.", actions=("list-endpoints",)
    )
    id: int | None = value(
        "the broker to unregister from a KRaft cluster.",
        actions=("unregister",),
        metavar="ID",
        short="i",
        bits=32,
    )
    strict: bool = flag(
        "exit with 1 if the cluster does not support it; Kafka's tool exits with 0.",
        actions=("unregister",),
    )
    override: list[str] = values(
        "a property of every broker, kept for later starts.",
        actions=("start",),
        metavar="KEY=VALUE",
    )


def run(options: LocalClusterOptions, env: Environment) -> ExitStatus:
    """Run the verb, and print a line for each step. JSON output is the final state."""
    verb, broker_id = _verb(options.words)
    refuse_other_actions(options, verb)
    if verb in REMOTE_VERBS:
        return _run_remote(verb, options, env)
    from kafkapy.tools.local.local_cluster import LocalCluster

    quiet = options.output is OutputFormat.json

    def print_line(line: str) -> None:
        if not quiet:
            env.line(line)
            env.stdout.flush()

    cluster = LocalCluster(_layout(options, verb), print_line)
    with terminable():
        _run_local(verb, cluster, broker_id)
    if quiet or verb == "status":
        show(env, _report(cluster, cluster.status()), options.output)
    return ExitStatus.SUCCESS


def _run_local(verb: str, cluster: LocalCluster, broker_id: int) -> None:
    match verb:
        case "start":
            cluster.start()
        case "stop":
            cluster.stop()
        case "kill":
            cluster.kill(broker_id)
        case "restart":
            cluster.restart(broker_id)


def _verb(words: list[str]) -> tuple[str, int]:
    """The verb and its broker (0: all)."""
    verb, *operands = words or [""]
    expected = 1 if verb in _BROKER_VERBS else 0
    if verb not in VERBS or len(operands) < expected:
        raise UsageError(
            "Name an action: kafkapy cluster start|status|stop|kill ID|restart ID, or"
            " cluster-id|list-endpoints|unregister --bootstrap-server HOST:PORT"
        )
    if len(operands) > expected:
        raise UsageError(f"Found non argument parameters: {','.join(operands[expected:])}")
    if not expected:
        return verb, 0
    if not is_natural(operands[0]):
        raise UsageError(f"{operands[0]} is not the id of a broker")
    return verb, int(operands[0])


def _run_remote(verb: str, options: LocalClusterOptions, env: Environment) -> ExitStatus:
    """Run a verb of Kafka's tool on any cluster."""
    options.command_config = options.command_config or options.config
    if verb == "unregister":
        return _unregister(options, env)
    if options.include_fenced_brokers:
        return _list_registrations(options, env)
    with options.connect(env) as cluster:
        found = cluster.metadata([])
    if verb == "cluster-id":
        report = _id_report(found)
    else:
        report = _endpoints_report([each for _, each in sorted(found.brokers.items())], {})
    show(env, report, options.output)
    return ExitStatus.SUCCESS


def _unregister(options: LocalClusterOptions, env: Environment) -> ExitStatus:
    """Unregister a broker. Text and status are Kafka's, also if the cluster does not support it."""
    from kafkapy.admin.registrations import unregister_broker

    require(options, "id")
    assert options.id is not None
    with options.connect(env) as cluster:
        is_unregistered = unregister_broker(cluster, options.id)
    line = "The target cluster does not support the broker unregistration API."
    if is_unregistered:
        line = f"Broker {options.id} is no longer registered."
    data = {"broker": options.id, "unregistered": is_unregistered}
    show(env, Report("cluster", [data], [line]), options.output)
    return ExitStatus.SUCCESS if is_unregistered or not options.strict else ExitStatus.FAILURE


def _list_registrations(options: LocalClusterOptions, env: Environment) -> ExitStatus:
    from kafkapy.admin.registrations import registrations

    with options.connect(env) as cluster:
        found = registrations(cluster)
    states = {each.broker: "fenced" if each.is_fenced else "unfenced" for each in found}
    show(env, _endpoints_report(list(states), states), options.output)
    return ExitStatus.SUCCESS


def _id_report(found: ClusterMetadata) -> Report:
    line = "No cluster ID found. The Kafka version is probably too old."
    if found.cluster_id is not None:
        line = f"Cluster ID: {found.cluster_id}"
    return Report("cluster", [{"cluster_id": found.cluster_id}], [line])


def _endpoints_report(brokers: Sequence[Broker], states: Mapping[Broker, str]) -> Report:
    """Kafka 4's columns if there are states."""
    *names, last = ENDPOINT_COLUMNS
    columns = (*names, *(("STATE",) if states else ()), last)
    cells = [
        (str(b.broker_id), b.host, str(b.port), b.rack or "null", *([states[b]] if states else []))
        for b in brokers
    ]
    rows = [columns, *((*row, "broker") for row in cells)]
    widths = [10, max(len(row[1]) for row in rows), 10, max(len(row[3]) for row in rows)]
    widths += [10, 0] if states else [0]
    text = [
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    data = [
        {"broker": b.broker_id, "host": b.host, "port": b.port, "rack": b.rack}
        | ({"state": states[b]} if states else {})
        for b in brokers
    ]
    return Report("cluster", data, text, [Table(columns, rows[1:])])


def _layout(options: LocalClusterOptions, verb: str) -> ClusterLayout:
    """The layout on disk; `start` creates it, or changes it according to the options."""
    from pathlib import Path

    from kafkapy.client.properties import parse_assignments
    from kafkapy.tools.local.cluster_layout import create, load

    directory = Path(options.dir).resolve()
    layout = load(directory)
    if verb != "start":
        if layout is None:
            raise UsageError(
                f"There is no cluster in {directory}: kafkapy cluster start creates one"
            )
        return layout
    overrides = parse_assignments(options.override)
    if layout is None:
        base_port = BASE_PORT if options.base_port is None else options.base_port
        brokers = BROKERS if options.brokers is None else options.brokers
        layout = create(directory, brokers, base_port, overrides, options.zookeeper)
    else:
        chosen = (options.base_port, overrides, options.zookeeper)
        layout = layout.with_changes(options.brokers, *chosen)
    return layout


def _report(cluster: LocalCluster, members: list[Member]) -> Report:
    layout, zookeeper_pid = cluster.layout, cluster.zookeeper_pid()
    zookeeper = f"127.0.0.1:{layout.zookeeper_port}"
    data = {
        "directory": str(layout.directory),
        "bootstrap_servers": cluster.bootstrap_servers,
        "zookeeper": {"address": zookeeper, "pid": zookeeper_pid},
        "brokers": [{**asdict(member), "alive": member.pid is not None} for member in members],
    }
    rows = [_row("ZooKeeper", zookeeper, zookeeper_pid)]
    for member in members:
        role = "" if member.is_controller is None else ("no", "yes")[member.is_controller]
        leaders = "" if member.leaders is None else member.leaders
        rows.append(_row(f"Broker {member.broker_id}", member.address, member.pid, role, leaders))
    return Report("cluster", [data], map(_line, rows), [Table(COLUMNS, rows)])


def _line(row: list[object]) -> str:
    return "\t".join(f"{c}: {v}" for c, v in zip(COLUMNS, row, strict=True) if v != "")


def _row(
    name: str, address: str, pid: int | None, controller: str = "", leaders: int | str = ""
) -> list[object]:
    state = "offline" if pid is None else "running"
    return [name, address, state, "" if pid is None else pid, controller, leaders]


COMMAND: Final = Command(
    "cluster",
    LocalClusterOptions,
    run,
    as_argparse=True,
    reported_failures="with unregister, the cluster does not support it",
    operands="words",
    refused=dict.fromkeys(
        ("bootstrap-controller", "C"),
        "kafkapy sends no requests to KRaft controllers; use --bootstrap-server",
    ),
    groups={
        "Connection": "config",
        "A local cluster": "dir brokers base-port zookeeper override",
        "List and unregister brokers": "include-fenced-brokers id strict",
    },
    examples={
        "Start ZooKeeper and three brokers on this machine; the first listens on port 9092.": (
            "start"
        ),
        "Show which brokers run and which partitions they lead.": "status",
        "Kill broker 2; restart 2 starts it again.": "kill 2",
        "Print the id of any cluster.": "cluster-id {B}",
    },
)
