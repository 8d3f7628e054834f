"""The end of the commands that print messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed
from kafkapy.cli.framework.termination import terminable


@contextmanager
def message_output(
    env: Environment,
    *,
    count: Callable[[], int],
    give_back: Callable[[], None],
    close: Callable[[], None],
    enable_systest_events: bool,
) -> Iterator[None]:
    """Around the printing of messages to `env.stdout.buffer`. However it ends, the consumer is
    closed and the count goes to stderr. `give_back` is called first when stdout takes no more.

    Raises:
        CommandFailed: stdout takes no more, and not because its reader is gone.
    """
    try:
        with terminable():
            yield
        env.stdout.flush()
    except TimeoutError:
        env.warn("ERROR Error processing message, terminating consumer process: TimeoutException")
    except OSError as error:
        env.abandon_stdout()
        give_back()
        if not isinstance(error, BrokenPipeError):
            raise CommandFailed.unwritten(error) from error
        env.warn("Unable to write to standard out, closing consumer.")
    finally:
        try:
            close()
        finally:
            env.warn(f"Processed a total of {count()} messages")
            if enable_systest_events:
                env.line("shutdown_complete")
