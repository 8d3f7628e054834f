"""`kafkapy server start|stop`: Kafka's `kafka-server-start.sh` and `kafka-server-stop.sh`."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import CommonOptions, flag, properties_of, value, values
from kafkapy.cli.framework.output import Report, show
from kafkapy.cli.framework.termination import terminable

STOP_LIMIT_MS: Final = 60_000


@dataclass
class ServerOptions(CommonOptions):
    """The flags of both verbs."""

    words: list[str] = values(
        "What to do, and the broker's property file (not needed to start).",
        metavar="start|stop [server.properties]",
        choices=("start", "stop"),
    )
    override: list[str] = values("A property that wins over the file.", metavar="KEY=VALUE")
    daemon: bool = flag("start: run in the background; returns when the broker serves.")
    until_eof: bool = flag(
        "start: stop when standard input ends, as it does with the process that holds its other"
        " end."
    )
    pid: int | None = value("stop: the process.", metavar="PID")
    log_dir: str | None = value("stop: the broker that runs on this directory.", metavar="DIR")
    timeout_ms: int = value(
        "stop: how long to wait for its end.", metavar="MS", default=STOP_LIMIT_MS
    )
    signal: str = value("stop: the signal.", metavar="NAME", default="TERM")


def run(options: ServerOptions, env: Environment) -> ExitStatus:
    """Start or stop."""
    verb, *files = options.words or [""]
    if verb not in ("start", "stop"):
        raise UsageError("Say what to do: kafkapy server start|stop [server.properties]")
    if len(files) > 1:
        raise UsageError(f"Found non argument parameters: {','.join(files[1:])}")
    return (_start if verb == "start" else _stop)(options, files[0] if files else None, env)


def _start(options: ServerOptions, file: str | None, env: Environment) -> ExitStatus:
    properties = _properties(options, file)
    if options.daemon and options.until_eof:
        raise UsageError("--until-eof is for a broker in the foreground, not with --daemon")
    if options.daemon:
        from kafkapy.tools.local.broker_processes import log_dirs, start_in_background

        words = [file] if file else []
        words += [f"--override={word}" for word in options.override]
        with terminable():
            pid, output = start_in_background(words, log_dirs(properties))
        line = f"Started the broker with pid {pid}; its output is in {output}"
        show(env, Report("server", [{"pid": pid, "output": str(output)}], [line]), options.output)
        return ExitStatus.SUCCESS
    from kafkapy.server.process import run as run_broker

    return ExitStatus(run_broker(properties, options.until_eof))


def _stop(options: ServerOptions, file: str | None, env: Environment) -> ExitStatus:
    from kafkapy.tools.local.broker_processes import stop

    pids = _brokers_to_stop(options, file)
    if not pids:
        # Kafka's script says it on stdout, and callers look there.
        env.line("No kafka server to stop")
        return ExitStatus.FAILURE
    sent = _signal(options.signal)
    left = [pid for pid in pids if not stop(pid, options.timeout_ms / 1000, sent)]
    if left:
        raise CommandFailed(
            f"Still running after {options.timeout_ms} ms: {', '.join(map(str, left))}"
        )
    show(env, Report("server", [{"stopped": pid} for pid in pids], []), options.output)
    return ExitStatus.SUCCESS


def _brokers_to_stop(options: ServerOptions, file: str | None) -> list[int]:
    """The broker that was named, by pid, directory or property file; else every one, as Kafka's."""
    from kafkapy.tools.local.broker_processes import broker_of, is_broker, log_dirs, running_brokers

    if options.pid is not None:
        return [options.pid] if is_broker(options.pid) else []
    if options.log_dir is not None:
        found = broker_of([options.log_dir])
    elif file is not None or options.override:
        found = broker_of(log_dirs(_properties(options, file)))
    else:
        return running_brokers()
    return [] if found is None else [found]


def _signal(name: str) -> signal.Signals:
    try:
        return signal.Signals["SIG" + name.upper().removeprefix("SIG")]
    except KeyError:
        raise UsageError(f"{name} is not the name of a signal") from None


def _properties(options: ServerOptions, file: str | None) -> dict[str, str]:
    """The file's properties with the overrides on top, and below them what KAFKA_OPTS says."""
    from kafkapy.client.properties import parse_assignments
    from kafkapy.common.java_environment import with_login_config

    return with_login_config(properties_of(file) | parse_assignments(options.override))


COMMAND: Final = Command(
    "server",
    ServerOptions,
    run,
    operands="words",
    refused={
        "process-role": "brokers of ZooKeeper mode have one role; name one with --log-dir or --pid",
        "node-id": "name the broker with --log-dir or --pid",
    },
    groups={
        "start": "override daemon until-eof",
        "stop": "pid log-dir timeout-ms signal",
    },
    examples={
        "Start a broker at localhost:9092 with its data in /tmp/kafka-logs; Ctrl-C stops it.": (
            "start"
        ),
        "Start a broker with a property file in the background.": (
            "start server.properties --daemon"
        ),
        "Start another broker, a cluster of its own, with its own port and data.": (
            "start --override broker.id=1 --override log.dirs=/tmp/logs-1 --override"
            " listeners=PLAINTEXT://localhost:9093"
        ),
        "Stop the broker that runs on a directory.": "stop --log-dir /tmp/logs-1",
    },
)
