"""Closes what a test opened, in the reverse order, at its end.

Helpers register what they open with `at_end`. What a fixture of a module or of the session opens
is closed with the module or the session: those fixtures are set up before the stack of a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from kafkapy.storage.filesystem import OsFile, OsFileSystem

_stacks: list[ExitStack] = []


@contextmanager
def closing() -> Iterator[None]:
    """Everything that is registered inside is closed on the way out."""
    with ExitStack() as stack:
        _stacks.append(stack)
        try:
            yield
        finally:
            _stacks.remove(stack)


def at_end(close: Callable[[], object]) -> None:
    """Call `close` when the test ends; it must not mind to be called again."""
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
        """The paths of the files that nobody has closed yet."""
        self._files = [file for file in self._files if file._fd >= 0]
        return [file.path for file in self._files]
