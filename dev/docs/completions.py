"""Writes the output of `kafkapy completion show` to completions/, for packages and readers."""

from __future__ import annotations

import argparse
from typing import Final

from dev.report import ROOT
from kafkapy.cli.framework import completion_scripts

DIRECTORY: Final = ROOT / "completions"
NAMES: Final = {"kafkapy.bash": "bash", "_kafkapy": "zsh", "kafkapy.fish": "fish"}


def files() -> dict[str, str]:
    """The text of each completion file, by its name."""
    return {name: completion_scripts.script(shell) for name, shell in NAMES.items()}


def main() -> int:
    """Write the files, or print the stale ones with --check. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="scripts/completions", description="Write completions/ from the commands' definitions."
    )
    parser.add_argument("--check", action="store_true", help="fail if a file is out of date")
    check = parser.parse_args().check
    DIRECTORY.mkdir(exist_ok=True)
    stale = []
    for name, text in files().items():
        path = DIRECTORY / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text)
    for name in stale:
        print(f"completions/{name} {'is not up to date' if check else 'written'}")
    return 1 if check and stale else 0
