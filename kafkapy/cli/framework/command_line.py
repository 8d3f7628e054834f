"""The way of a command line to its command, and the one place where errors become exit statuses.

Two parsers read the one declaration of a command's options. A command line without a fault is read
by `Command.read`. Help, versions and faults are Typer's (`typer_form`), whose import takes longer
than most commands.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafkapy.cli.framework.command_table import COMMANDS, load
from kafkapy.cli.framework.drop_in_names import DROP_IN
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.common.errors import KafkapyError
from kafkapy.common.java_environment import without_effect


def run(words: Sequence[str], env: Environment) -> int:
    """Run a command line; the exit status. Never a traceback, unless --debug asks for one."""
    try:
        status = _call(words, env)
        env.stdout.flush()
    except KafkapyError as error:
        status = report(env, error, words)
    except BrokenPipeError:
        # The reader went away (`| head`): nobody is left to tell.
        env.abandon_stdout()
        status = ExitStatus.FAILURE
    except KeyboardInterrupt:
        status = ExitStatus.INTERRUPTED
    return status


def _call(words: Sequence[str], env: Environment) -> int:
    if words and words[0] in COMMANDS:
        _warn_of_environment(words, env)
        command = load(words[0])
        options = command.read(words[1:])
        if options is not None:
            return command.execute(options, env, words[1:])
    from kafkapy.cli.framework import typer_form

    return typer_form.run(words, env)


def _warn_of_environment(words: Sequence[str], env: Environment) -> None:
    """Name what Kafka's scripts take from the environment, and the commands that stand for them do
    not."""
    if any(words[0] == command for command, *_ in DROP_IN.values()):
        starts_jvm = tuple(words[:2]) == DROP_IN["zookeeper-server-start.sh"]
        line = without_effect(os.environ, starts_jvm=starts_jvm)
        if line:
            env.warn(line)


def report(env: Environment, error: KafkapyError, words: Sequence[str]) -> ExitStatus:
    """One line for what went wrong, one for what to do where that is known, and where help is."""
    if env.debug:
        raise error
    env.warn(str(error))
    from kafkapy.cli.framework import hints

    hints.warn(env, error, words)
    if isinstance(error, UsageError):
        command = f" {words[0]}" if words and words[0] in COMMANDS else ""
        env.warn(f"Try 'kafkapy{command} --help'.")
    return ExitStatus.FAILURE
