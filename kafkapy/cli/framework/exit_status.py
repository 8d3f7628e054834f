"""Exit statuses and errors of commands.

Kafka's tools have only the statuses 0 and 1, and scripts rely on that.
"""

from __future__ import annotations

from enum import IntEnum

from kafkapy.common.errors import KafkapyError


class ExitStatus(IntEnum):
    """Exit statuses of every command."""

    SUCCESS = 0
    FAILURE = 1
    """Wrong usage, a refused request or a lost connection. A line on stderr has the reason."""
    INTERRUPTED = 130
    """Ctrl-C: 128 + SIGINT, as in shells."""


class UsageError(KafkapyError):
    """The command line itself is wrong; nothing was done."""


class CommandFailed(KafkapyError):
    """The command line was valid, but the command failed. The message is complete."""

    @classmethod
    def stdout_unwritable(cls, error: OSError) -> CommandFailed:
        """The error for a stdout that cannot be written."""
        return cls(f"Unable to write to standard out: {error.strerror}")
