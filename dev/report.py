"""Documents of measured parts: a new measurement replaces its part."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_TEXT: Any = {"capture_output": True, "text": True}


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def wrapped(text: str) -> str:
    """A paragraph in lines of at most 100 columns."""
    return textwrap.fill(text, 100, break_on_hyphens=False)


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def kafkapy_version() -> str:
    """The version and the commit; "+" when more than docs/ was changed since."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "describe", "--always", "--exclude=*"], **_TEXT).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "--", ":!docs"], **_TEXT).stdout
    tree = commit + "+" * bool(changed.strip()) if commit else "no git"
    return f"kafkapy {version('kafkapy')} ({tree})"


def machine() -> str:
    """Machine of the measurements: processors, kernel, Python version and load average."""
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    cpu = f"{len(models)} x {models[0]}" if models else platform.machine()
    system = f"Linux {platform.release()}, Python {platform.python_version()}"
    return f"{cpu}, {system}, load average {os.getloadavg()[0]:.1f}"


def replace_part(path: Path, title: str, body: str, introduction: str) -> None:
    """Put `body` under the heading `## title` of a Markdown file, in place or at its end."""
    old = path.read_text() if path.exists() else introduction
    head, *parts = re.split(r"^(?=## )", old, flags=re.MULTILINE)
    named = {part.split("\n", 1)[0][3:]: part for part in parts}
    named[title] = f"## {title}\n\n{body}"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(part.strip() for part in (head, *named.values())) + "\n")


def add_row(path: Path, title: str, row: Sequence[str]) -> None:
    """Add a row to the table that ends the part `## title` of a Markdown file."""
    text = path.read_text()
    _, named, rest = text.partition(f"## {title}\n")
    assert named, f"{path} has no part {title}"
    end = text.index("\n## ", len(text) - len(rest)) if "\n## " in rest else len(text)
    path.write_text(f"{text[:end].rstrip()}\n{table(row, []).partition(chr(10))[0]}\n{text[end:]}")


def replace_rows(
    path: Path, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Put rows into the table of the part `## title`, in place of rows with the same first cell."""
    _, named, part = path.read_text().partition(f"## {title}\n")
    lines = part.partition("\n## ")[0].splitlines() if named else []
    old = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")][2:]
    merged = {cells[0]: cells for cells in [*old, *map(list, rows)]}
    replace_part(path, title, table(head, list(merged.values())), "")
