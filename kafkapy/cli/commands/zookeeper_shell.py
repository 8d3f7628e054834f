"""`kafkapy zookeeper-shell`: Kafka's `zookeeper-shell.sh`, one command or a prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import CommonOptions, values

if TYPE_CHECKING:
    from kafkapy.tools.zookeeper.shell import ZooKeeperShell

TLS_OPTION: Final = "-zk-tls-config-file"


@dataclass
class ZooKeeperShellOptions(CommonOptions):
    """The address, and the words of a command."""

    words: list[str] = values(
        "ZooKeeper's address, optionally -zk-tls-config-file and a property file with"
        " zookeeper.ssl.* keys, and a command such as `ls /brokers/ids`; without a"
        " command, commands are read from stdin.",
        metavar="HOST:PORT[/CHROOT] [-zk-tls-config-file FILE] [COMMAND ...]",
    )


def run(options: ZooKeeperShellOptions, env: Environment) -> ExitStatus:
    """Run the command, or each line of stdin. A failed line does not end the prompt."""
    from kafkapy.client.properties import load_properties
    from kafkapy.tools.zookeeper.shell import ZooKeeperShell, connect

    if not options.words:
        raise UsageError(
            f"USAGE: kafkapy zookeeper-shell host:port[/chroot] [{TLS_OPTION} file] [command ...]"
        )
    hosts, *command = options.words
    properties: dict[str, str] = {}
    if command and command[0] == TLS_OPTION:
        if len(command) < 2:
            raise UsageError(f"{TLS_OPTION} needs a file")
        properties, command = load_properties(command[1]), command[2:]

    def print_line(line: str = "") -> None:
        env.line(line)
        env.stdout.flush()  # the reader of a pipe waits for answers, and for events of watches

    print_line(f"Connecting to {hosts}")
    client = connect(hosts, properties, reconnects=not command)
    try:
        shell = ZooKeeperShell(client, print_line, env.warn)
        if command:
            print_line()
            shell.run(command)
        else:
            _prompt(shell, hosts, env)
    finally:
        client.stop()
        client.close()
    return ExitStatus.SUCCESS


def _prompt(shell: ZooKeeperShell, hosts: str, env: Environment) -> None:
    from kafkapy.cli.framework import hints
    from kafkapy.tools.zookeeper.shell import QUIT
    from kafkapy.tools.zookeeper.text import ShellError

    env.line("Welcome to ZooKeeper!")
    number = 0
    while True:
        if env.interactive:
            env.write(f"[zk: {hosts}(CONNECTED) {number}] ")
        env.stdout.flush()
        line = env.stdin.readline()
        if not line or line.strip() in QUIT:
            return
        try:
            shell.run_line(line)
        except ShellError as error:
            env.warn(str(error))
            hints.warn(env, error, ())
        number += 1


COMMAND: Final = Command(
    "zookeeper-shell",
    ZooKeeperShellOptions,
    run,
    operands="words",
    verbatim=True,
    examples={
        "List the ids of the live brokers.": "localhost:2181 ls /brokers/ids",
        "Print which broker is the controller.": "localhost:2181 get /controller",
        "Open a prompt; help lists the commands.": "localhost:2181",
    },
)
