"""`kafkapy server start|stop|install-service`: Kafka's `kafka-server-start.sh` and `-stop.sh`."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    CommonOptions,
    flag,
    refuse_other_actions,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, show
from kafkapy.cli.framework.termination import terminable

STOP_LIMIT_MS: Final = 60_000


@dataclass
class ServerOptions(CommonOptions):
    """The flags of all verbs."""

    words: list[str] = values(
        "The action, and the broker's property file (required only by install-service).",
        metavar="start|stop|install-service [server.properties]",
        choices=("start", "stop", "install-service"),
    )
    override: list[str] = values(
        "a property that overrides the file.", actions=("start", "stop"), metavar="KEY=VALUE"
    )
    daemon: bool = flag(
        "run in the background; returns when the broker serves.", actions=("start",)
    )
    until_eof: bool = flag(
        "stop at the end of standard input, for example when the parent process ends.",
        actions=("start",),
    )
    processes: str | None = value(
        "the number of brokers from the one file; auto: one for each core.",
        actions=("start", "install-service"),
        metavar="N|auto",
    )
    pid: int | None = value("the process.", actions=("stop",), metavar="PID")
    log_dir: str | None = value(
        "the broker that runs on this directory.", actions=("stop",), metavar="DIR"
    )
    timeout_ms: int = value(
        "the time limit.", actions=("stop",), metavar="MS", default=STOP_LIMIT_MS, bits=32
    )
    signal: str = value("the signal.", actions=("stop",), metavar="NAME", default="TERM")
    run_as: str | None = value(
        "the account that the broker runs as.", actions=("install-service",), metavar="ACCOUNT"
    )
    user: bool = flag(
        "a service of this user instead of a system service.", actions=("install-service",)
    )


def run(options: ServerOptions, env: Environment) -> ExitStatus:
    """Start or stop a broker, or install a systemd service for it."""
    verb, *files = options.words or [""]
    action = {"start": _start, "stop": _stop, "install-service": _install_service}.get(verb)
    if action is None:
        raise UsageError(
            "Name an action: kafkapy server start|stop|install-service [server.properties]"
        )
    if len(files) > 1:
        raise UsageError(f"Found non argument parameters: {','.join(files[1:])}")
    refuse_other_actions(options, verb)
    return action(options, files[0] if files else None, env)


def _start(options: ServerOptions, file: str | None, env: Environment) -> ExitStatus:
    from kafkapy.tools.local.broker_processes import log_dirs
    from kafkapy.tools.local.private_files import check_owner

    properties = _properties(options, file)
    for directory in log_dirs(properties):
        check_owner(Path(directory), "log.dirs")
    if options.until_eof and (options.daemon or options.processes is not None):
        raise UsageError(
            "--until-eof is for one broker in the foreground, not with --daemon or --processes"
        )
    words = [file] if file else []
    words += [f"--override={word}" for word in options.override]
    if options.daemon:
        from kafkapy.tools.local.broker_processes import (
            OUTPUT_FILE,
            SUPERVISOR_OUTPUT_FILE,
            start_in_background,
        )

        name = OUTPUT_FILE
        if options.processes is not None:
            words.append(f"--processes={options.processes}")
            name = SUPERVISOR_OUTPUT_FILE
        with terminable():
            pid, output = start_in_background(words, log_dirs(properties), name)
        line = f"Started the broker with pid {pid}; its output is in {output}"
        show(env, Report("server", [{"pid": pid, "output": str(output)}], [line]), options.output)
        return ExitStatus.SUCCESS
    if options.processes is not None:
        return _supervise(options.processes, words, properties, env)
    from kafkapy.server.process import run as run_broker

    return ExitStatus(run_broker(properties, options.until_eof))


def _supervise(
    processes: str, words: list[str], properties: dict[str, str], env: Environment
) -> ExitStatus:
    from kafkapy.tools.supervisor.supervisor import Supervisor, processes_of

    def log(text: str) -> None:
        # The output may be on a full disk. The brokers must not end because of that.
        with contextlib.suppress(OSError):
            env.line(text)
            env.stdout.flush()

    supervisor = Supervisor(processes_of(processes), words, properties, log)
    with terminable():
        supervisor.start()
    return ExitStatus(supervisor.run())


def _stop(options: ServerOptions, file: str | None, env: Environment) -> ExitStatus:
    from kafkapy.tools.local.broker_processes import stop

    pids = _brokers_to_stop(options, file)
    if not pids:
        # On stdout, as in Kafka's script, because callers read it there.
        env.line("No kafka server to stop")
        return ExitStatus.FAILURE
    signal_number = _signal(options.signal)
    still_running = [pid for pid in pids if not stop(pid, options.timeout_ms / 1000, signal_number)]
    if still_running:
        raise CommandFailed(
            f"Still running after {options.timeout_ms} ms: {', '.join(map(str, still_running))}"
        )
    show(env, Report("server", [{"stopped": pid} for pid in pids], []), options.output)
    return ExitStatus.SUCCESS


def _brokers_to_stop(options: ServerOptions, file: str | None) -> list[int]:
    """The broker with the given pid, directory or property file; otherwise all brokers, as in
    Kafka.
    """
    from kafkapy.tools.local import broker_processes as brokers

    if options.pid is not None:
        is_running = brokers.is_broker(options.pid) or brokers.is_supervisor(options.pid)
        return [options.pid] if is_running else []
    if options.log_dir is not None:
        directories = [options.log_dir]
    elif file is not None or options.override:
        directories = brokers.log_dirs(_properties(options, file))
    else:
        return brokers.running_brokers()
    found = brokers.supervisor_of(directories) or brokers.broker_of(directories)
    return [] if found is None else [found]


def _install_service(options: ServerOptions, file: str | None, env: Environment) -> ExitStatus:
    from kafkapy.client.properties import load_properties
    from kafkapy.tools.local.service_files import next_commands, service_files

    if file is None:
        raise UsageError(
            "A property file is required: kafkapy server install-service server.properties"
        )
    properties = load_properties(file)  # raises if it is not a property file
    if options.processes is not None:
        from kafkapy.tools.supervisor import process_properties, supervisor

        process_properties.check(properties, supervisor.processes_of(options.processes))
    if options.user == (options.run_as is not None):
        raise UsageError("An account is required: --run-as ACCOUNT, or --user for your own")
    if options.run_as is not None:
        _check_account(options.run_as)
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    found = service_files(
        sys.executable,
        Path(file).resolve(),
        options.processes,
        options.run_as,
        config if options.user else None,
    )
    environment, unit = found
    try:
        for path, text in found if not environment.path.exists() else [unit]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    except OSError as error:
        raise CommandFailed(f"Cannot write {error.filename}: {error.strerror}") from error
    commands = next_commands(options.user)
    lines = [f"Wrote {unit.path}; the broker's environment is in {environment.path}", "Now run:"]
    lines += [f"  {command}" for command in commands]
    row = {"unit": str(unit.path), "environment": str(environment.path), "next": commands}
    show(env, Report("server", [row], lines), options.output)
    return ExitStatus.SUCCESS


def _check_account(name: str) -> None:
    """
    Raises:
        CommandFailed: the account does not exist.
    """
    try:
        pwd.getpwnam(name)
    except KeyError:
        raise CommandFailed(
            f"There is no account {name}; create it with: useradd --system {name}"
        ) from None


def _signal(name: str) -> signal.Signals:
    try:
        return signal.Signals["SIG" + name.upper().removeprefix("SIG")]
    except KeyError:
        raise UsageError(f"{name} is not the name of a signal") from None


def _properties(options: ServerOptions, file: str | None) -> dict[str, str]:
    """The file's properties. Overrides replace them; KAFKA_OPTS supplies a missing login config."""
    from kafkapy.client.config_providers import resolved
    from kafkapy.client.properties import load_properties, parse_assignments
    from kafkapy.common.java_environment import with_login_config

    properties = {} if file is None else load_properties(file)
    return with_login_config(resolved(properties | parse_assignments(options.override)))


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
        "start": "override daemon processes until-eof",
        "stop": "pid log-dir timeout-ms signal",
        "install-service": "run-as user",
    },
    examples={
        "Start a broker at localhost:9092 with its data in /tmp/kafka-logs; Ctrl-C stops it.": (
            "start"
        ),
        "Start a broker for each core of this machine in the background.": (
            "start server.properties --processes auto --daemon"
        ),
        "Install a systemd service that runs a broker as the account kafka.": (
            "install-service /etc/kafka/server.properties --run-as kafka"
        ),
        "Stop the broker that runs on a directory.": "stop --log-dir /tmp/logs-1",
    },
)
