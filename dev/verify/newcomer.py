"""Clone, run what the README says, and look what is left behind.

The whole: in `kafkapy` and in `späte Brötchen/kafkapy`, `scripts/demo` and `scripts/test` as they
stand in the README, with everything downloaded and installed. About an hour.

`--quick`, for continuous integration, about a minute. It leaves out:

- pip: the clones have environments on top of the packages of this one;
- `scripts/test`: in the first clone one of its tests runs instead, the one that types the commands
  of the README's "Run a broker";
- `scripts/demo` in the first clone: the second has `kafkapy` in its path as well.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dev.report import ROOT
from dev.verify.leftovers import IGNORED_DIRECTORIES, marked, outlives
from kafkapy.common.errors import ConfigError
from kafkapy.tools.local.ports import check_port
from tests.harness.processes.layered_venv import make_layered_venv

PLAIN = "kafkapy"
ODD = "späte Brötchen/kafkapy"
DEMO = ("scripts/demo",)
TEST = ("scripts/test",)
ONE_TEST = (
    ".venv/bin/python",
    "-m",
    "pytest",
    "-q",
    "tests/integration/test_documents.py::test_a_page_that_starts_its_own_brokers[README.md]",
)
LIMIT_S = 45 * 60
QUICK_LIMIT_S = 10 * 60
GRACE_S = 15.0

MARK = "KAFKAPY_NEWCOMER"
PORTS = (2181, 9091, 9092, 9093, 9094)
CACHES = {".cache"}


class NamesBefore(NamedTuple):
    """Names in /tmp and in the home directory before the newcomer's commands run."""

    temporary: set[str]
    home: set[str]


def clone(directory: Path) -> None:
    """Clone the HEAD of this checkout."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "clone", "-q", str(ROOT), str(directory)], check=True)


def succeeds(command: Sequence[str], directory: Path, home: Path, limit_s: float) -> bool:
    """Run a command of the README in a clone."""
    print_line(f"{directory}$ {shlex.join(command)}")
    environment = {**os.environ, "HOME": str(home), MARK: str(os.getpid())}
    # Packages of this environment must not be used; downloads of pip may.
    environment.setdefault("PIP_CACHE_DIR", str(real_home() / ".cache" / "pip"))
    # pip runs rustc for its version. rustup's rustc creates ~/.rustup if it does not exist.
    environment.setdefault("RUSTUP_HOME", str(real_home() / ".rustup"))
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=directory, env=environment, start_new_session=True)
    try:
        status: int | str = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        status = f"no end within {limit_s:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    print_line(f"status {status} after {time.monotonic() - started:.0f} s")
    return status == 0


def real_home() -> Path:
    """The home directory of the user database, which the JVM uses instead of $HOME."""
    return Path(pwd.getpwuid(os.getuid()).pw_dir)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} if directory.is_dir() else set()


def before() -> NamesBefore:
    """Check that the ports are free; returns the names in /tmp and in the home directory.

    Raises:
        ConfigError: a port that the README names is taken.
    """
    for port in PORTS:
        check_port("127.0.0.1", port, "What the README starts")
    return NamesBefore(names(Path("/tmp")), names(real_home()))


def left_behind(before_names: NamesBefore, home: Path, clones: Sequence[Path]) -> Iterator[str]:
    """A line for each process, port and file; the processes are ended, by pid."""
    for pid, command in list(marked({MARK: str(os.getpid())})):
        if outlives(pid, GRACE_S):
            yield f"process {pid}: {command[:200]}"
            os.kill(pid, signal.SIGKILL)
    for port in PORTS:
        try:
            check_port("127.0.0.1", port, "A newcomer")
        except ConfigError as error:
            yield f"port: {error}"
    for directory, found in (
        (Path("/tmp"), names(Path("/tmp")) - before_names.temporary - IGNORED_DIRECTORIES),
        (real_home(), names(real_home()) - before_names.home),
        (home, names(home) - CACHES),
    ):
        yield from (f"file: {directory / name}" for name in sorted(found))
    for directory in clones:
        status = ["git", "-C", str(directory), "status", "--porcelain"]
        done = subprocess.run(status, capture_output=True, text=True, check=True)
        yield from (f"file in {directory}: {line}" for line in done.stdout.splitlines())


def print_line(line: str) -> None:
    print(f"newcomer: {line}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/newcomer",
        description=__doc__.splitlines()[0],
        epilog="--debian, alone: the README and the tutorials on an empty Debian machine",
    )
    parser.add_argument("scratch", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="about a minute; for CI")
    options = parser.parse_args()
    plain, odd = options.scratch / PLAIN, options.scratch / ODD
    home = options.scratch / "home"
    home.mkdir()
    try:
        before_names = before()
    except ConfigError as error:
        print_line(str(error))
        return 1
    todo = [(plain, DEMO), (plain, TEST), (odd, DEMO), (odd, TEST)]
    if options.quick:
        todo = [(plain, ONE_TEST), (odd, DEMO)]
    for directory in (plain, odd):
        clone(directory)
        if options.quick:
            make_layered_venv(directory)
    limit_s = QUICK_LIMIT_S if options.quick else LIMIT_S
    failed = [
        f"failed in {directory}: {shlex.join(command)}"
        for directory, command in todo
        if not succeeds(command, directory, home, limit_s)
    ]
    problems = [
        *failed,
        *(f"left behind: {line}" for line in left_behind(before_names, home, (plain, odd))),
    ]
    for line in problems:
        print_line(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
