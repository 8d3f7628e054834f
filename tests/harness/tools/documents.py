"""Commands of README.md and docs/: they are run, page by page, and their output is compared.

A fenced block in `sh`, `bash` or `console` is run, unless a comment above it says why not:

- `<!-- run by FILE: WHAT -->`: a test there, or a script of CI, runs it;
- `<!-- not run: REASON -->`.

A `text` block after commands shows their output: its lines are among those that they print, in
this order; `...` stands for anything. The blocks of a page are one script. Its ports become free
ones, and `/tmp/kafkapy-` a directory of the test.

Lines that install the package are left out: it is installed. `scripts/newcomer --debian` runs them.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from dev.verify.leftovers import GRACE_S, marked, outlives

ROOT: Final = Path(__file__).parents[3]
LIMIT_S: Final = 240
COMMANDS: Final = ("sh", "bash", "console")
MARK: Final = "KAFKAPY_DOCUMENT"
INSTALLS: Final = ("apt-get ", "python3 -m venv ", ". .venv/", "pip install ")
_FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_MARK: Final = re.compile(r"<!-- (?:run by (?P<by>[^\s:]+): \S.*|not run: (?P<why>\S.*)) -->")
_COMMENT: Final = re.compile(r"<!--(?:(?!-->).)*-->\Z", re.DOTALL)
_END: Final = "=== end of block ==="
_PORTS: Final = (2181, 8081, 9091, 9092, 9093, 9094, 9095, 9308)
# Below the ports of the pages, which scripts/newcomer expects to be free. Its test takes every
# other window, so that it can run beside the tests.
_WINDOWS: Final = range(4_000, 9_080, len(_PORTS))
_OF_NEWCOMER: Final = "KAFKAPY_NEWCOMER"


class Block(NamedTuple):
    """One fenced block: its language, its text, and the comment above it."""

    language: str
    text: str
    above: str

    @property
    def mark(self) -> re.Match[str] | None:
        """The reason why the commands are not run here."""
        return _MARK.fullmatch(self.above)


def pages() -> list[str]:
    """Every page whose commands are checked."""
    found = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    kept = [path for path in found if path.parts[1] not in ("decisions", "evidence")]
    return ["README.md", "SECURITY.md", *sorted(map(str, kept))]


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in their order."""
    text = (ROOT / page).read_text()
    found = []
    for fence in _FENCE.finditer(text):
        comment = _COMMENT.search(text[: fence.start()].rstrip())
        above = " ".join(comment[0].split()) if comment else ""
        indent = fence[1]
        lines = (line.removeprefix(indent) for line in fence[3].splitlines())
        found.append(Block(fence[2], "\n".join(lines), above))
    return found


def steps(page: str) -> list[tuple[str, list[str]]]:
    """The commands of a page that are run, each block with the outputs that follow it."""
    found: list[tuple[str, list[str]]] = []
    is_run = False
    for block in blocks(page):
        if block.language in COMMANDS:
            is_run = block.mark is None
            if is_run:
                found.append((block.text, []))
        elif block.language == "text" and is_run:
            found[-1][1].append(block.text)
    return found


def installation(page: str) -> list[str]:
    """The lines of a page that install the package and its requirements."""
    return [line for text, _ in steps(page) for line in text.splitlines() if _installs(line)]


def script(page: str) -> str:
    """The other commands of a page, with a line after each block that separates their outputs."""
    return "".join(f"{_others(text)}\necho '{_END}'\n" for text, _ in steps(page))


def difference(page: str, printed: str) -> str | None:
    """A message about the first output that a page shows and its script did not print."""
    for (text, outputs), said in zip(steps(page), printed.split(f"{_END}\n"), strict=False):
        for output in outputs:
            missing = first_missing(output.splitlines(), said.splitlines())
            if missing is not None:
                return f"{page}: {missing!r} is not what\n{text}\nprints:\n{said}"
    return None


class World:
    """Free ports in the place of a page's, and a directory in the place of /tmp/kafkapy-*."""

    def __init__(self, directory: Path, ports: Mapping[int, int] | None = None) -> None:
        """`ports` are those of servers that run already."""
        self.directory = directory
        self.ports = {**_window(), **(ports or {})}

    def own(self, text: str) -> str:
        """The text with the ports and directories of this world."""
        text = re.sub(r"\b\d{4}\b", lambda m: str(self.ports.get(int(m[0]), m[0])), text)
        return text.replace("/tmp/kafkapy-", f"{self.directory}/")

    def of_page(self, text: str) -> str:
        """The text with the ports and directories of the page."""
        back = {str(own): str(port) for port, own in self.ports.items()}
        text = re.sub(r"\b\d{4,5}\b", lambda m: back.get(m[0], m[0]), text)
        return text.replace(f"{self.directory}/", "/tmp/kafkapy-")

    def run(self, page: str) -> None:
        """Run the commands of a page in one shell, and compare their output."""
        status, printed = self._shell(self.own(script(page)))
        printed = self.of_page(printed)
        assert status == 0, f"{page}: status {status}\n{printed}"
        found = difference(page, printed)
        assert found is None, found

    def _shell(self, commands: str) -> tuple[int, str]:
        path = f"{Path(sys.executable).parent}:{ROOT / 'scripts' / 'bin'}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, MARK: str(self.directory)}
        environment["MPLCONFIGDIR"] = str(self.directory / "matplotlib")  # not in ~/.config
        with (self.directory / "printed").open("w+") as sink:
            shell = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", commands],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
            try:
                status = shell.wait(LIMIT_S)
            finally:
                shell.kill()
                shell.wait()
                grace_s = GRACE_S if shell.returncode == 0 else 0.0
                found = marked({MARK: str(self.directory)})
                left = [each for each in found if outlives(each[0], grace_s)]
                for pid, _ in left:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            sink.seek(0)
            printed = sink.read()
        assert status != 0 or not left, f"left running: {left}"
        return status, printed


def _installs(line: str) -> bool:
    return line.startswith(INSTALLS)


def _others(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not _installs(line))


def first_missing(wanted: list[str], said: list[str]) -> str | None:
    """The first wanted line that does not follow the earlier ones; None if all are in order."""
    rest: Iterator[str] = iter(said)
    for line in filter(None, map(str.strip, wanted)):
        pattern = ".*".join(map(re.escape, re.sub(r"\s+", " ", line).split("...")))
        if not any(re.fullmatch(pattern, " ".join(each.split())) for each in rest):
            return line
    return None


def _window() -> dict[int, int]:
    """Free ports in one row, so that those of a cluster follow each other."""
    order = list(_WINDOWS)[_OF_NEWCOMER in os.environ :: 2]
    random.Random(os.urandom(8)).shuffle(order)
    for first in order:
        # In the order of _PORTS: the brokers' come one after the other.
        window = {port: first + index for index, port in enumerate(_PORTS)}
        if all(map(_is_free, window.values())):
            return window
    raise RuntimeError("no ports are left")


def _is_free(port: int) -> bool:
    with socket.socket() as probe, suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False
