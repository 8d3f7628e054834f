"""Failures of commands that continue after a failure, as Kafka's tools for groups do."""

from __future__ import annotations

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.common.errors import KafkapyError


class Failures:
    """Prints failures as `Error:` lines on stdout, as in Kafka, or with `is_quiet` on stderr,
    because programs read stdout. The exit status is 0 after failures, except with `strict`."""

    def __init__(self, env: Environment, *, is_quiet: bool, strict: bool) -> None:
        self._env = env
        self._print_line = env.warn if is_quiet else env.line
        self._strict = strict
        self._count = 0

    def report(self, text: str, error: KafkapyError | None = None) -> None:
        from kafkapy.cli.framework import hints

        self._print_line(f"\nError: {text}")
        hints.warn(self._env, error or KafkapyError(text), ())
        self._count += 1

    def add(self) -> None:
        """Count a failure that a report shows."""
        self._count += 1

    @property
    def status(self) -> ExitStatus:
        return ExitStatus.FAILURE if self._strict and self._count else ExitStatus.SUCCESS
