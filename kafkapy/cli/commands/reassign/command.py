"""`kafkapy reassign`: Kafka's `kafka-reassign-partitions.sh` (`ReassignPartitionsCommand`)."""

from __future__ import annotations

import importlib
from typing import Final

from kafkapy.cli.commands.reassign.options import ReassignOptions, check
from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus
from kafkapy.cli.framework.output import show

CLIENT_ID: Final = "reassign-partitions-tool"
# action -> (module, function). The modules are imported on use, because they need different tools.
ACTIONS: Final = {
    "generate": ("kafkapy.cli.commands.reassign.generate", "generate"),
    "execute": ("kafkapy.cli.commands.reassign.execute", "execute"),
    "verify": ("kafkapy.cli.commands.reassign.actions", "verify"),
    "cancel": ("kafkapy.cli.commands.reassign.actions", "cancel"),
    "list_": ("kafkapy.cli.commands.reassign.list_moves", "list_moves"),
}


def run(options: ReassignOptions, env: Environment) -> ExitStatus:
    """Check the flags, then do the one action, through the brokers or through znodes."""
    from kafkapy.admin.reassignments import ReassignmentFailed

    action = check(options)
    try:
        if options.bootstrap_server is None:
            from kafkapy.cli.commands.reassign.znodes import run_by_znodes

            return run_by_znodes(action, options, env)
        if options.zookeeper is not None:
            env.warn(
                "Warning: ignoring deprecated --zookeeper option because --bootstrap-server"
                " was specified.  The --zookeeper option will be removed in a future version"
                " of Kafka."
            )
        return _over_brokers(action, options, env)
    except ReassignmentFailed as error:
        raise CommandFailed(str(error)) from error


def _over_brokers(action: str, options: ReassignOptions, env: Environment) -> ExitStatus:
    module, function = ACTIONS[action]
    act = getattr(importlib.import_module(module), function)
    status: ExitStatus
    if not options.dry_run:
        with options.connect(env, CLIENT_ID) as cluster:
            status = act(cluster, options, env)
            return status
    from kafkapy.cli.views.reassign import requests_report

    with options.connect_dry(env, CLIENT_ID) as dry:
        status = act(dry, options, env)
        show(env, requests_report("reassign", dry.requests), options.output)
        return status


COMMAND: Final = Command(
    "reassign",
    ReassignOptions,
    run,
    failure="Error: {}",
    reported_failures="with --verify, replicas are not at their targets",
    groups={
        "Connection": "zookeeper",
        "What to do": "generate execute verify cancel list",
        "Generate": (
            "topics-to-move-json-file broker-list disable-rack-aware strategy decommission"
            " replication-factor"
        ),
        "Execute, verify and cancel": (
            "reassignment-json-file throttle replica-alter-log-dirs-throttle preserve-throttles"
            " timeout batch-size additional disallow-replication-factor-change dry-run watch strict"
        ),
    },
    examples={
        "List the partitions that are moving.": "--list {B}",
        "Propose moves of all replicas off broker 3.": (
            "--generate --strategy minimal --decommission 3 {B}"
        ),
        "Begin the moves of a file, at most 10 MB a second.": (
            "--execute --reassignment-json-file moves.json --throttle 10000000 {B}"
        ),
        "Watch the moves until they end.": (
            "--verify --reassignment-json-file moves.json --watch {B}"
        ),
    },
)
