"""`kafkapy`: the table of commands, and the one place where errors become exit statuses.

A command's module is imported when that command is called, and never before: starting quickly is a
feature.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperGroup

from kafkapy import __version__
from kafkapy.cli.environment import Environment
from kafkapy.cli.exit_status import ExitStatus, UsageError
from kafkapy.common.errors import KafkapyError

if TYPE_CHECKING:
    from kafkapy.cli.command import Command

# name -> (module, one line of help). `COMMAND` of the module is what runs.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "server": ("kafkapy.cli.server", "Start or stop a broker on this machine."),
    "zookeeper": ("kafkapy.cli.zookeeper", "Start or stop a ZooKeeper on this machine."),
    "cluster": (
        "kafkapy.cli.cluster",
        "Start, watch, hurt and stop a cluster on this machine; the id of any cluster.",
    ),
    "topics": ("kafkapy.cli.topics", "Create, list, describe, alter and delete topics."),
    "configs": ("kafkapy.cli.configs", "Describe and alter dynamic configs of topics and brokers."),
    "reassign": ("kafkapy.cli.reassign", "Move replicas between brokers and log directories."),
    "leader-election": ("kafkapy.cli.leader_election", "Elect preferred or unclean leaders."),
    "preferred-replica-election": (
        "kafkapy.cli.preferred_replica_election",
        "Elect preferred leaders, as up to Kafka 2.8.",
    ),
    "log-dirs": ("kafkapy.cli.log_dirs", "What lies in the log directories of brokers."),
    "delete-records": ("kafkapy.cli.delete_records", "Delete the oldest records of partitions."),
    "console-producer": ("kafkapy.cli.console_producer", "Write lines from stdin to a topic."),
    "console-consumer": ("kafkapy.cli.console_consumer", "Read records of a topic to stdout."),
    "consumer-groups": (
        "kafkapy.cli.consumer_groups",
        "List, describe and delete consumer groups; reset and delete their offsets.",
    ),
    "get-offsets": (
        "kafkapy.cli.get_offsets",
        "Offsets of partitions: latest, earliest, or by time.",
    ),
    "producer-perf": (
        "kafkapy.cli.producer_perf",
        "Measure how fast records are acknowledged.",
    ),
    "consumer-perf": ("kafkapy.cli.consumer_perf", "Measure how fast records are read."),
    "verifiable-producer": (
        "kafkapy.cli.verifiable_producer",
        "Write numbered records; a JSON line for each.",
    ),
    "verifiable-consumer": (
        "kafkapy.cli.verifiable_consumer",
        "Read as a member of a group; a JSON line an event.",
    ),
    "replica-verification": (
        "kafkapy.cli.replica_verification",
        "Compare the replicas of partitions, batch by batch.",
    ),
    "dump-log-segments": (
        "kafkapy.cli.dump_log_segments",
        "Show the files of a log directory: segments, indexes, snapshots.",
    ),
    "dump-log": ("kafkapy.cli.dump_log_segments", "The same as dump-log-segments."),
    "state-change-log-merger": (
        "kafkapy.cli.state_change_log_merger",
        "Merge state-change logs in the order of time, or draw a partition's.",
    ),
    "transactions": ("kafkapy.cli.transactions", "List, describe and abort transactions."),
    "acls": ("kafkapy.cli.acls", "Add, remove and list access control entries."),
    "e2e-latency": (
        "kafkapy.cli.e2e_latency",
        "Measure the time from a send to the read of the record.",
    ),
    "zookeeper-shell": ("kafkapy.cli.zookeeper_shell", "Read and change znodes."),
    "broker-api-versions": ("kafkapy.cli.broker_api_versions", "What each broker speaks."),
    "agent": ("kafkapy.cli.agent", "Follow files and write their lines to a topic."),
    "spark-submit": ("kafkapy.cli.spark_submit", "spark-submit with topics as sources and sinks."),
    "completion": ("kafkapy.cli.completion", "Completion of commands and flags in your shell."),
    "version": ("kafkapy.cli.version", "Versions of kafkapy and of what it runs on."),
}


def commands() -> dict[str, Command[Any]]:
    """Every command by name, imported: for what is written about all of them."""
    return {name: importlib.import_module(module).COMMAND for name, (module, _) in COMMANDS.items()}


class LazyGroup(TyperGroup):
    """The root: knows every command's name and help, imports the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(entry[0])
        return typer.main.get_command(module.COMMAND.app())

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command.

        Raises:
            UsageError: there is no such command; names the nearest.
        """
        if args[0] in COMMANDS:
            return super().resolve_command(ctx, args)
        near = difflib.get_close_matches(args[0], COMMANDS, n=1)
        raise UsageError(
            f"{args[0]} is not a kafkapy command" + (f"; did you mean {near[0]}?" if near else "")
        )

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in COMMANDS.items()])

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, **extra: Any
    ) -> Any:
        """Run, and exit with a status; never with a traceback unless --debug asks for one."""
        env: Environment = extra.setdefault("obj", Environment())
        words = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        extra["prog_name"] = "kafkapy"
        try:
            status = super().main(args=words, **extra)
            env.stdout.flush()
        except (KafkapyError, typer.BadParameter.__base__) as error:  # type: ignore[misc]
            status = report(env, error, words)
        except BrokenPipeError:
            # The reader went away (`| head`): nobody is left to tell.
            env.abandon_stdout()
            status = ExitStatus.FAILURE
        sys.exit(status or ExitStatus.SUCCESS)


def report(env: Environment, error: Exception, words: Sequence[str]) -> ExitStatus:
    """One line for what went wrong, and where to look further."""
    if env.debug:
        raise error
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    env.warn(message)
    if not isinstance(error, KafkapyError) or isinstance(error, UsageError):
        command = f" {words[0]}" if words and words[0] in COMMANDS else ""
        env.warn(f"Try 'kafkapy{command} --help'.")
    return ExitStatus.FAILURE


def surprise(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The hook for what nobody expected: one line, unless --debug is there."""
    if "--debug" in sys.argv:
        sys.__excepthook__(kind, error, trace)
    else:
        env = Environment()
        env.warn(f"kafkapy: {kind.__name__}: {error}")
        env.warn("This is a fault of kafkapy; --debug shows where it comes from.")


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Kafka for Python people: a broker, the ops toolbox, and topics as Spark tables."""
    env: Environment = ctx.obj
    if version:
        env.line(__version__)
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        env.line(ctx.get_help())


def main() -> None:
    """The console script."""
    sys.excepthook = surprise
    # Not `app()`, which would put Typer's own hook in the place of ours.
    typer.main.get_command(app).main()


if __name__ == "__main__":
    main()
