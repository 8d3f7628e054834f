"""`kafkapy zookeeper start|stop`: Kafka's `zookeeper-server-start.sh` and `-stop.sh`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import CommonOptions, flag, properties_of, value, values
from kafkapy.cli.framework.output import Report, show
from kafkapy.cli.framework.termination import terminable
from kafkapy.tools.zookeeper.implementations import Implementation

START_LIMIT_S: Final = 30.0
STOP_LIMIT_MS: Final = 30_000


@dataclass
class ZooKeeperOptions(CommonOptions):
    """The flags of both verbs."""

    words: list[str] = values(
        "What to do, and ZooKeeper's property file.",
        metavar="start|stop [zoo.cfg]",
        choices=("start", "stop"),
    )
    implementation: Implementation = value(
        "start: kafkapy's own server, or Apache's, which needs Java and pyspark's jars.",
        metavar="kafkapy|apache",
        default=Implementation.KAFKAPY,
        choices=Implementation,
    )
    daemon: bool = flag("start: run in the background; returns when it serves.")
    data_dir: str | None = value("Where the data is; wins over the file.", metavar="DIR")
    port: int | None = value("start: the client port; wins over the file.", metavar="PORT")
    pid: int | None = value("stop: the process.", metavar="PID")
    timeout_ms: int = value(
        "stop: how long to wait for its end.", metavar="MS", default=STOP_LIMIT_MS
    )


def run(options: ZooKeeperOptions, env: Environment) -> ExitStatus:
    """Start or stop."""
    verb, *files = options.words or [""]
    if verb not in ("start", "stop"):
        raise UsageError("Say what to do: kafkapy zookeeper start|stop [zoo.cfg]")
    if len(files) > 1:
        raise UsageError(f"Found non argument parameters: {','.join(files[1:])}")
    return (_start if verb == "start" else _stop)(options, files[0] if files else None, env)


def _start(options: ZooKeeperOptions, file: str | None, env: Environment) -> ExitStatus:
    from kafkapy.tools.zookeeper.process import address_of, run_in_foreground, start_in_background

    config, implementation = _config(options, file), options.implementation
    if not options.daemon:
        return ExitStatus(run_in_foreground(config, implementation))
    with terminable():
        pid, output = start_in_background(config, implementation, START_LIMIT_S)
    host, port = address_of(config)
    line = f"Started ZooKeeper at {host}:{port} with pid {pid}; its output is in {output}"
    row = {"pid": pid, "host": host, "port": port, "output": str(output)}
    show(env, Report("zookeeper", [row], [line]), options.output)
    return ExitStatus.SUCCESS


def _stop(options: ZooKeeperOptions, file: str | None, env: Environment) -> ExitStatus:
    from kafkapy.tools.local.broker_processes import stop

    pids = _servers_to_stop(options, file)
    if not pids:
        # Kafka's script says it on stdout, and callers look there.
        env.line("No zookeeper server to stop")
        return ExitStatus.FAILURE
    left = [pid for pid in pids if not stop(pid, options.timeout_ms / 1000)]
    if left:
        raise CommandFailed(
            f"Still running after {options.timeout_ms} ms: {', '.join(map(str, left))}"
        )
    show(env, Report("zookeeper", [{"stopped": pid} for pid in pids], []), options.output)
    return ExitStatus.SUCCESS


def _servers_to_stop(options: ZooKeeperOptions, file: str | None) -> list[int]:
    """The one that was named, by pid, directory or file; else every one that kafkapy started."""
    from kafkapy.tools.zookeeper.process import is_zookeeper, running_servers, server_of

    if options.pid is not None:
        return [options.pid] if is_zookeeper(options.pid) else []
    if options.data_dir is None and file is None:
        return running_servers()
    found = server_of(_config(options, file)["dataDir"])
    return [] if found is None else [found]


def _config(options: ZooKeeperOptions, file: str | None) -> dict[str, str]:
    """The file's properties with the options on top."""
    from kafkapy.tools.zookeeper.process import effective_config

    chosen = {"dataDir": options.data_dir, "clientPort": options.port}
    overrides = {key: str(given) for key, given in chosen.items() if given is not None}
    return effective_config(properties_of(file), overrides, options.implementation)


COMMAND: Final = Command(
    "zookeeper",
    ZooKeeperOptions,
    run,
    operands="words",
    groups={
        "start": "daemon port implementation",
        "stop": "pid timeout-ms",
        "start and stop": "data-dir",
    },
    examples={
        "Start a ZooKeeper in the background.": (
            "start --daemon --port 2181 --data-dir /tmp/zookeeper"
        ),
        "Start a ZooKeeper with a property file; Ctrl-C stops it.": "start zookeeper.properties",
        "Stop the ZooKeeper that runs on a directory.": "stop --data-dir /tmp/zookeeper",
    },
)
