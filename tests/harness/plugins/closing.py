"""Closes the resources that a test opened, in the reverse order, at its end.

Helpers register the resources that they open with `at_end`. Resources of fixtures of a module or of
the session are closed with the module or the session: those fixtures are set up before the stack of
a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from kafkapy.storage.filesystem import OsFile, OsFileSystem

_stacks: list[ExitStack] = []


@contextmanager
def closing() -> Iterator[None]:
    """Close everything that is registered inside, at the exit."""
    with ExitStack() as stack:
        _stacks.append(stack)
        try:
            yield
        finally:
            _stacks.remove(stack)


def at_end(close: Callable[[], object]) -> None:
    """Call `close` when the test ends; further calls must have no effect."""
    _stacks[-1].callback(close)


class Disk(OsFileSystem):
    """The disk of this machine. Files still open at the end of the test are closed, as the
    kernel closes those of a process that ends."""

    def __init__(self) -> None:
        self._files: list[OsFile] = []

    def open(self, path: str, create: bool = False) -> OsFile:
        file = super().open(path, create)
        self._files.append(file)
        at_end(file.close)
        return file

    def open_files(self) -> list[str]:
        """The paths of the files that are still open."""
        self._files = [file for file in self._files if file._fd >= 0]
        return [file.path for file in self._files]
