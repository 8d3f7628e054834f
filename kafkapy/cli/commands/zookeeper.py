"""`kafkapy zookeeper`: Kafka's `zookeeper-server-start.sh` and `-stop.sh`; export and import of
znodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    CommonOptions,
    flag,
    properties_of,
    refuse_other_actions,
    require,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, show
from kafkapy.cli.framework.termination import terminable
from kafkapy.tools.zookeeper.implementations import Implementation

if TYPE_CHECKING:
    from kafkapy.tools.zookeeper.transfer import TransferResult

START_LIMIT_S: Final = 30.0
STOP_LIMIT_MS: Final = 30_000


@dataclass
class ZooKeeperOptions(CommonOptions):
    """The flags of all verbs."""

    words: list[str] = values(
        "The action, and ZooKeeper's property file or the file of znodes.",
        metavar="start|stop [zoo.cfg] | export|import FILE",
        choices=("start", "stop", "export", "import"),
    )
    implementation: Implementation = value(
        "kafkapy's own server, or Apache's, which needs Java and pyspark's jars.",
        actions=("start",),
        metavar="kafkapy|apache",
        default=Implementation.KAFKAPY,
        choices=Implementation,
    )
    daemon: bool = flag("run in the background; returns when it serves.", actions=("start",))
    data_dir: str | None = value(
        "The data directory; overrides the file. export: read it without a server.", metavar="DIR"
    )
    port: int | None = value(
        "the client port; overrides the file.", actions=("start",), metavar="PORT"
    )
    pid: int | None = value("the process.", actions=("stop",), metavar="PID")
    timeout_ms: int = value(
        "the time limit.", actions=("stop",), metavar="MS", default=STOP_LIMIT_MS, bits=32
    )
    zookeeper: str | None = value(
        "the ZooKeeper to read or to write.",
        actions=("export", "import"),
        metavar="HOST:PORT,.../CHROOT",
    )
    zk_tls_config_file: str | None = value(
        "With --zookeeper: a property file with zookeeper.ssl.* keys.", metavar="FILE"
    )
    overwrite: bool = flag(
        "write into a tree that is not empty; znodes that are not in the file stay.",
        actions=("import",),
    )
    force: bool = flag("continue although brokers are registered.", actions=("export", "import"))


def run(options: ZooKeeperOptions, env: Environment) -> ExitStatus:
    """Start, stop, export or import."""
    verb, *files = options.words or [""]
    if verb not in _VERBS:
        raise UsageError(
            "Name an action: kafkapy zookeeper start|stop [zoo.cfg], or export|import FILE"
        )
    if len(files) > 1:
        raise UsageError(f"Found non argument parameters: {','.join(files[1:])}")
    refuse_other_actions(options, verb)
    return _VERBS[verb](options, files[0] if files else None, env)


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
        # On stdout, as in Kafka's script, because callers read it there.
        env.line("No zookeeper server to stop")
        return ExitStatus.FAILURE
    still_running = [pid for pid in pids if not stop(pid, options.timeout_ms / 1000)]
    if still_running:
        raise CommandFailed(
            f"Still running after {options.timeout_ms} ms: {', '.join(map(str, still_running))}"
        )
    show(env, Report("zookeeper", [{"stopped": pid} for pid in pids], []), options.output)
    return ExitStatus.SUCCESS


def _export(options: ZooKeeperOptions, file: str | None, env: Environment) -> ExitStatus:
    from kafkapy.tools.zookeeper.transfer import export_from_directory, export_from_zookeeper

    if file is None or (options.zookeeper is None) == (options.data_dir is None):
        raise UsageError("export needs a file, and either --zookeeper or --data-dir")
    if options.data_dir is not None:
        result = export_from_directory(
            Path(options.data_dir), Path(file), force=options.force, warn=env.warn
        )
    else:
        assert options.zookeeper is not None
        result = export_from_zookeeper(
            *(options.zookeeper, _client_properties(options), Path(file)),
            force=options.force,
            warn=env.warn,
        )
    line = f"Exported {result.znodes} znodes to {file}, without {result.ephemerals} ephemerals"
    _show_transfer(env, options, result, line)
    return ExitStatus.SUCCESS


def _import(options: ZooKeeperOptions, file: str | None, env: Environment) -> ExitStatus:
    from kafkapy.tools.zookeeper.transfer import import_to_zookeeper

    require(options, "zookeeper")
    assert options.zookeeper is not None
    if file is None:
        raise UsageError("import needs a file")
    result = import_to_zookeeper(
        *(Path(file), options.zookeeper, _client_properties(options)),
        overwrite=options.overwrite,
        force=options.force,
        warn=env.warn,
    )
    line = (
        f"Imported {result.znodes} znodes into {options.zookeeper}, and compared them with the file"
    )
    _show_transfer(env, options, result, line)
    return ExitStatus.SUCCESS


def _show_transfer(
    env: Environment, options: ZooKeeperOptions, result: TransferResult, line: str
) -> None:
    lines = [line, f"SHA-256 of the znodes: {result.sha256}"]
    show(env, Report("zookeeper", [result._asdict()], lines), options.output)


def _client_properties(options: ZooKeeperOptions) -> dict[str, str]:
    from kafkapy.client.properties import load_properties

    file = options.zk_tls_config_file
    return {} if file is None else load_properties(file)


def _servers_to_stop(options: ZooKeeperOptions, file: str | None) -> list[int]:
    """The server with the given pid, directory or file; else all servers that kafkapy started."""
    from kafkapy.tools.zookeeper.process import is_zookeeper, running_servers, server_of

    if options.pid is not None:
        return [options.pid] if is_zookeeper(options.pid) else []
    if options.data_dir is None and file is None:
        return running_servers()
    found = server_of(_config(options, file)["dataDir"])
    return [] if found is None else [found]


def _config(options: ZooKeeperOptions, file: str | None) -> dict[str, str]:
    """The configuration: options override the file."""
    from kafkapy.tools.zookeeper.process import effective_config

    chosen = {"dataDir": options.data_dir, "clientPort": options.port}
    overrides = {key: str(given) for key, given in chosen.items() if given is not None}
    return effective_config(properties_of(file), overrides, options.implementation)


_VERBS: Final[dict[str, Callable[[ZooKeeperOptions, str | None, Environment], ExitStatus]]] = {
    "start": _start,
    "stop": _stop,
    "export": _export,
    "import": _import,
}

COMMAND: Final = Command(
    "zookeeper",
    ZooKeeperOptions,
    run,
    operands="words",
    groups={
        "start": "daemon port implementation",
        "stop": "pid timeout-ms",
        "start, stop and export": "data-dir",
        "export and import": "zookeeper zk-tls-config-file overwrite force",
    },
    examples={
        "Start a ZooKeeper in the background.": (
            "start --daemon --port 2181 --data-dir /tmp/zookeeper"
        ),
        "Stop the ZooKeeper that runs on a directory.": "stop --data-dir /tmp/zookeeper",
        "Write all znodes to a file.": "export znodes.json --zookeeper localhost:2181",
        "Write the znodes of a file to an empty ensemble.": (
            "import znodes.json --zookeeper zk1:2181,zk2:2181,zk3:2181/kafka"
        ),
    },
)
