"""Failures of commands that go on after one, as Kafka's tools for groups do."""

from __future__ import annotations

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.common.errors import KafkapyError


class Failures:
    """Failures: `Error:` lines on stdout as in Kafka, or on stderr if stdout is for programs; and
    the exit status, which is 0 unless the user wants it `strict`."""

    def __init__(self, env: Environment, *, is_quiet: bool, strict: bool) -> None:
        self._env = env
        self._say = env.warn if is_quiet else env.line
        self._strict = strict
        self._count = 0

    def tell(self, text: str, error: KafkapyError | None = None) -> None:
        from kafkapy.cli.framework import hints

        self._say(f"\nError: {text}")
        hints.warn(self._env, error or KafkapyError(text), ())
        self._count += 1

    def add(self) -> None:
        """A failure that a report shows by itself."""
        self._count += 1

    @property
    def status(self) -> ExitStatus:
        return ExitStatus.FAILURE if self._strict and self._count else ExitStatus.SUCCESS
