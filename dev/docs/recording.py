"""Recordings of real commands: a terminal session (asciinema's v2 format, and SVG), a Spark job."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from rich.ansi import AnsiDecoder
from rich.color import ColorType
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME

from dev.docs.svg import INK, PAPER, WIDTH
from dev.report import ROOT
from tests.harness.processes.broker_process import BrokerProcess

COLUMNS, ROWS = 96, 32
SERVER: Final = "--bootstrap-server 127.0.0.1:9092"
SESSION: Final = (
    "kafkapy server start --daemon --override log.dirs=data \\\n"
    "    --override listeners=PLAINTEXT://127.0.0.1:9092",
    f"kafkapy topics {SERVER} --create --topic orders --partitions 3",
    "printf '%s\\n' ann=12 bob=7 cy=31 | kafkapy console-producer --topic orders \\\n"
    f"    {SERVER} --property parse.key=true --property key.separator==",
    "kafkapy console-consumer --topic orders --group billing --from-beginning \\\n"
    f"    {SERVER} --max-messages 3 --property print.key=true",
    f"kafkapy consumer-groups {SERVER} --describe --group billing",
    "kafkapy server stop --log-dir data",
)
PAUSE_S = 1.2  # before each command, in the recording only
PROMPT = "\x1b[1;32m$\x1b[0m "
SAMPLE = ROOT / "kafkapy" / "tools" / "sample.log"
QUERY: Final = (
    "SELECT split(CAST(value AS STRING), ' +')[2] AS level, count(*) AS lines FROM logs"
    " GROUP BY level ORDER BY lines DESC"
)
MONOSPACE = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
MARGIN, LINE, CELL = 16.0, 18.0, (WIDTH - 32) / COLUMNS
WORDS = re.compile(r"\S+(?: \S+)*")  # SVG shows several blanks as one
# Escape sequences other than colours: the cursor, titles, modes.
OTHER_SEQUENCES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-ln-z]|\][^\x07\x1b]*(\x07|\x1b\\))")


def record(path: Path) -> None:
    """Run the session in an empty directory, and write the output of its terminal."""
    shown: list[tuple[float, str]] = []
    now = 0.0
    with tempfile.TemporaryDirectory(prefix="kafkapy-recording-") as directory:
        for command in SESSION:
            now += PAUSE_S
            shown.append((now, PROMPT + command.replace("\n", "\r\n") + "\r\n"))
            now += PAUSE_S / 2
            for after, output in run_on_terminal(command, directory):
                shown.append((now + after, output))
            now = max(now, shown[-1][0])
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "kafkapy"}
    events = [json.dumps([round(at, 3), "o", output]) for at, output in shown]
    path.write_text("\n".join([json.dumps(header), *events]) + "\n")


def run_on_terminal(command: str, directory: str) -> Iterator[tuple[float, str]]:
    """Run a command on a terminal. Yields the seconds since its start, and its output.

    Raises:
        CalledProcessError: it failed.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    found = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "xterm"}
    environment = os.environ | found
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    started = time.monotonic()
    with subprocess.Popen(
        ["bash", "-c", command],
        **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
        cwd=directory,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        while output := _read(ours):
            yield time.monotonic() - started, output.decode()
        os.close(ours)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def _read(terminal: int) -> bytes:
    """The next output; empty once all processes have closed the other end."""
    try:
        return os.read(terminal, 65536)
    except OSError as error:
        if error.errno == errno.EIO:  # how Linux reports that
            return b""
        raise


class Shown(NamedTuple):
    """A line of the terminal, and the time at which it was complete."""

    at: float
    text: str


def _lines(path: Path) -> list[Shown]:
    """The lines of a recording, whose session only appends."""
    lines: list[Shown] = []
    rest = ""
    for event in path.read_text().splitlines()[1:]:
        at, _, output = json.loads(event)
        rest += OTHER_SEQUENCES.sub("", output).replace("\r\n", "\n")
        *complete, rest = rest.split("\n")
        lines += [Shown(at, line.rstrip()) for line in complete]
    return lines


def rendered(path: Path) -> str:
    """A recording as SVG. Its lines appear at the times at which they were written; without
    animation, all are visible."""
    lines = _lines(path)
    height = 2 * MARGIN + LINE * len(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}"'
        f' width="{WIDTH:.0f}" height="{height:.0f}" role="img" fill="{INK}" font-size="13"'
        f' font-family="{MONOSPACE}">',
        "<title>A terminal session with kafkapy</title>",
        "<style>@keyframes hidden { from, to { visibility: hidden } }"
        " g { animation: hidden 1ms backwards }"
        " @media (prefers-reduced-motion: reduce) { g { animation: none } }</style>",
        f'<rect x=".5" y=".5" width="{WIDTH - 1:.0f}" height="{height - 1:.0f}" rx="6"'
        f' fill="{PAPER}" stroke="#d0d7de"/>',
    ]
    decoder = AnsiDecoder()
    for number, line in enumerate(lines):
        y = MARGIN + LINE * number + 13
        drawn = "".join(_spans(decoder, line.text, y))
        if drawn:
            parts.append(f'<g style="animation-delay: {line.at:.1f}s">{drawn}</g>')
    return "\n".join([*parts, "</svg>\n"])


def _spans(decoder: AnsiDecoder, line: str, y: float) -> Iterator[str]:
    """The words of a line as SVG elements, at their places in the grid of the terminal."""
    if not line:
        return
    column = 0
    for part, style, _ in decoder.decode_line(line.expandtabs()).render(Console(), end=""):
        for words in WORDS.finditer(part):
            x = MARGIN + CELL * (column + words.start())
            yield (
                f'<text x="{x:.1f}" y="{y:.0f}" textLength="{CELL * len(words[0]):.1f}"'
                f' lengthAdjust="spacingAndGlyphs"{_attributes(style or Style.null())}>'
                f"{escape(words[0])}</text>"
            )
        column += len(part)


def _attributes(style: Style) -> str:
    """SVG attributes of the weight and the colour."""
    found = ' font-weight="bold"' if style.bold else ""
    if style.color is not None and style.color.type is not ColorType.DEFAULT:
        found += f' fill="{style.color.get_truecolor(DEFAULT_TERMINAL_THEME).hex}"'
    return found + (' fill-opacity="0.6"' if style.dim else "")


def run_spark_job(path: Path) -> None:
    """Count the sample's log lines by level, from a topic, and write Spark's table."""
    kafkapy = Path(sys.executable).parent / "kafkapy"
    with tempfile.TemporaryDirectory(prefix="kafkapy-recording-") as directory:
        broker = BrokerProcess(Path(directory) / "logs")
        broker.start()
        try:
            topic = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "logs"]
            create = [kafkapy, "topics", "--create", *topic, "--partitions", "4"]
            subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
            with SAMPLE.open("rb") as lines:
                subprocess.run([kafkapy, "console-producer", *topic], check=True, stdin=lines)
            job = [kafkapy, "spark-submit", "--master", "local[2]", "--from", "logs", *topic[:2]]
            job += ["--sql", QUERY]
            path.write_bytes(subprocess.run(job, check=True, stdout=subprocess.PIPE).stdout)
        finally:
            broker.stop()


def log_levels(path: Path) -> list[tuple[str, int]]:
    """The rows of Spark's table."""
    found = re.findall(r"^\|(\w+) *\|(\d+) *\|$", path.read_text(), re.MULTILINE)
    return [(level, int(count)) for level, count in found]
