"""The end of the commands that print messages: flush, close, and print the count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed
from kafkapy.cli.framework.termination import terminable
from kafkapy.common.errors import KafkapyError


@contextmanager
def message_output(
    env: Environment,
    *,
    count: Callable[[], int],
    reset_offsets: Callable[[], None],
    close: Callable[[], None],
    enable_systest_events: bool,
) -> Iterator[None]:
    """The context for printing messages to `env.stdout.buffer`. At its end it closes the
    consumer and prints the count to stderr. If stdout cannot be written, it first calls
    `reset_offsets`.

    Raises:
        CommandFailed: stdout cannot be written, for another reason than a closed pipe.
    """
    try:
        with terminable():
            yield
        env.stdout.flush()
    except (KeyboardInterrupt, SystemExit, KafkapyError):
        _flush_or_reset_offsets(env, reset_offsets)
        raise
    except TimeoutError:
        env.warn("ERROR Error processing message, terminating consumer process: TimeoutException")
    except OSError as error:
        env.abandon_stdout()
        reset_offsets()
        if not isinstance(error, BrokenPipeError):
            raise CommandFailed.stdout_unwritable(error) from error
        env.warn("Unable to write to standard out, closing consumer.")
    finally:
        try:
            close()
        finally:
            env.warn(f"Processed a total of {count()} messages")
            if enable_systest_events:
                env.line("shutdown_complete")


def _flush_or_reset_offsets(env: Environment, reset_offsets: Callable[[], None]) -> None:
    """Write the records that were read, before closing the consumer commits their offsets."""
    is_written = False
    try:
        env.stdout.flush()
        is_written = True
    except OSError:
        env.abandon_stdout()
    finally:
        if not is_written:
            reset_offsets()
