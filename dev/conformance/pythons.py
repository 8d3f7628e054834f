"""The tests on the other Pythons of this machine: `scripts/conformance --pythons`.

`scripts/test` runs on one. Each of the others that is new enough gets an environment of its own,
which is kept, and runs the tests of the features that differ between Pythons: the event loop, TLS,
the types, Spark's workers.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from dev import report
from tests.harness.processes import apache_kafka

OLDEST: Final = (3, 11)
LIMIT_S: Final = 3600
_INTEGRATION: Final = (
    *("bad_input", "large_fetches", "real_clients", "runbook", "served_apis"),
    *("served_transactions", "stop_without_zookeeper", "system", "testing"),
)
_SECURITY: Final = ("oauth", "secure_listeners")
PARTS: Final[dict[str, tuple[str, ...]]] = {
    "units": ("tests/unit", "tests/scenarios"),
    "tools": ("tests/cli",),
    "simulator": ("tests/simulation",),
    "Spark": ("tests/spark",),
    "brokers and clients": (
        *(f"tests/integration/test_{name}.py" for name in _INTEGRATION),
        *(f"tests/security/test_{name}.py" for name in _SECURITY),
    ),
}
_SUMMARY: Final = re.compile(r"^=*\s*((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.MULTILINE)
_ASK: Final = "import sys, venv, ensurepip; print('.'.join(map(str, sys.version_info[:3])))"
PrintLine = Callable[[str], None]


def other_pythons(print_line: PrintLine) -> dict[str, Path]:
    """Pythons by version: the newest patch of each minor version, except that of this process."""
    found: dict[tuple[int, ...], Path] = {}
    for candidate in _candidates():
        done = subprocess.run([candidate, "-c", _ASK], capture_output=True, text=True)
        if done.returncode == 0:
            found[tuple(int(part) for part in done.stdout.split("."))] = candidate
    newest = {version[:2]: version for version in sorted(found)}
    newest.pop(sys.version_info[:2], None)
    chosen = [version for minor, version in newest.items() if minor >= OLDEST]
    for version in chosen:
        print_line(f"  {'.'.join(map(str, version))}: {found[version]}")
    return {".".join(map(str, version)): found[version] for version in chosen}


def _candidates() -> Iterable[Path]:
    directories = [Path(each) for each in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    directories += sorted((pyenv / "versions").glob("3.*/bin"))
    for directory in directories:
        yield from sorted(directory.glob("python3.[0-9]*[0-9]"))


def environment(version: str, python: Path) -> Path:
    """The Python of a virtual environment that has the package. Raises Unavailable."""
    package = f"{report.ROOT}[spark,dev]"
    # The install is editable: it refers to these sources, and another clone has others.
    wanted = sha256(package.encode() + (report.ROOT / "pyproject.toml").read_bytes()).hexdigest()
    home = apache_kafka.cache_dir() / "pythons" / version
    inside, stamp = home / "bin" / "python", home / "installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        apache_kafka.run_or_unavailable([str(python), "-m", "venv", "--clear", str(home)])
        apache_kafka.run_or_unavailable([str(inside), "-m", "pip", "install", "-q", "-e", package])
        stamp.write_text(wanted)
    return inside


def run(print_line: PrintLine) -> tuple[bool, str]:
    """Run the tests. Returns whether all passed on all Pythons, and a part for
    docs/evidence/conformance.md."""
    rows: list[list[str]] = []
    good = True
    for version, python in other_pythons(print_line).items():
        try:
            inside = environment(version, python)
        except apache_kafka.Unavailable as why:
            rows.append([version, "all", f"NOT RUN: {why}", ""])
            good = False
            continue
        for part, paths in PARTS.items():
            started = time.monotonic()
            status, found = _tests(inside, paths)
            good &= status == 0
            rows.append([version, part, found, f"{time.monotonic() - started:.0f} s"])
            print_line(f"  {version}, {part}: {found}")
    head = ["Python", "tests", "found", "took"]
    text = (
        f"{report.today()}, {report.kafkapy_version()}. Tests of `scripts/test` on this machine's"
        f" other Pythons; `scripts/test` itself runs"
        f" {'.'.join(map(str, sys.version_info[:3]))}.\n\n" + report.table(head, rows)
    )
    return good and bool(rows), text


def _tests(python: Path, paths: Iterable[str]) -> tuple[int, str]:
    """Run tests. Returns the exit status, and pytest's summary with the names of failed tests."""
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(
        command,
        cwd=report.ROOT,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    names = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    summary = _SUMMARY.search(done.stdout)
    found = summary[1] if summary else apache_kafka.last_line(done.stdout + done.stderr)
    return done.returncode, "; ".join([found, *names])
