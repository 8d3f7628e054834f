"""Runs command lines, and is the one place that converts errors to exit statuses.

`jopt` parses every command line with the options that the command declares. Typer only formats help
(`help_page`), because its import takes longer than most commands.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafkapy import __version__
from kafkapy.cli.framework.command import load
from kafkapy.cli.framework.command_table import COMMANDS, ROOT_OPTIONS
from kafkapy.cli.framework.drop_in_names import DROP_IN
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus, UsageError
from kafkapy.cli.framework.jopt import parse
from kafkapy.cli.framework.output_file import has_failed
from kafkapy.common.errors import KafkapyError
from kafkapy.common.java_environment import without_effect


def run(words: Sequence[str], env: Environment) -> int:
    """Run a command line. Returns the exit status. Shows a traceback only with --debug."""
    try:
        status = _call(words, env)
        env.stdout.flush()
    except KafkapyError as error:
        status = report(env, error, words)
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`), so nothing is reported.
        env.abandon_stdout()
        status = ExitStatus.FAILURE
    except OSError as error:
        if not has_failed(env.stdout):
            raise
        env.abandon_stdout()
        status = report(env, CommandFailed.stdout_unwritable(error), words)
    except KeyboardInterrupt:
        status = ExitStatus.INTERRUPTED
    return status


def _call(words: Sequence[str], env: Environment) -> int:
    given, operands = parse(words, ROOT_OPTIONS, verbatim=True)
    if "version" in given:
        env.line(__version__)
    elif "help" in given or not operands:
        from kafkapy.cli.framework import help_page

        env.line(help_page.of_all())
    else:
        return _call_command(operands, env)
    return ExitStatus.SUCCESS


def _call_command(words: Sequence[str], env: Environment) -> int:
    name, *rest = words
    if name not in COMMANDS:
        raise UsageError(_unknown(name))
    _warn_of_environment(words, env)
    command = load(name)
    options = command.read(rest)
    if options.version:
        env.line(__version__)
    elif options.help:
        from kafkapy.cli.framework import help_page

        env.line(help_page.of_command(name, command))
    else:
        return command.execute(options, env, rest)
    return ExitStatus.SUCCESS


def _unknown(name: str) -> str:
    """The error text for a command that does not exist, with the most similar command."""
    import difflib

    similar = difflib.get_close_matches(name, COMMANDS, n=1)
    return f"{name} is not a kafkapy command" + (f"; did you mean {similar[0]}?" if similar else "")


def _warn_of_environment(words: Sequence[str], env: Environment) -> None:
    """Warn of environment variables that Kafka's scripts use, but the commands that replace them
    do not."""
    if any(words[0] == command for command, *_ in DROP_IN.values()):
        starts_jvm = tuple(words[:2]) == DROP_IN["zookeeper-server-start.sh"]
        line = without_effect(os.environ, starts_jvm=starts_jvm)
        if line:
            env.warn(line)


def report(env: Environment, error: KafkapyError, words: Sequence[str]) -> ExitStatus:
    """Print an error, its hint if there is one, and for usage errors the command for help."""
    if env.debug:
        raise error
    try:
        env.stdout.flush()
    except OSError:
        env.abandon_stdout()  # stderr may still have a reader
    env.warn(str(error))
    from kafkapy.cli.framework import hints

    hints.warn(env, error, words)
    if isinstance(error, UsageError):
        command = f" {words[0]}" if words and words[0] in COMMANDS else ""
        env.warn(f"Try 'kafkapy{command} --help'.")
    return ExitStatus.FAILURE
