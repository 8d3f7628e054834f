"""Runs one mutant in a copy of the tree: seeds of the simulator until one catches it, or its tests.

`python -m dev.mutate.hunt FIRST COUNT`, in the copy, prints its result as JSON.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from dev.mutate.mutant import Mutant

ROOT: Final = Path(__file__).parents[2]
COPIED: Final = ("kafkapy", "tests/simulation", "tests/harness", "dev/mutate", "dev/simulate")
_TESTS: Final = ("pyproject.toml", "dev", "tests/conftest.py", "tests/unit", "tests/scenarios")
HANGS: Final = "hangs"
CRASHES: Final = "crashes"
_SEED_LIMIT_S: Final = 240
"""The limit of processor time for one seed, which takes about one second."""


class Result(NamedTuple):
    """Result of a mutant.

    `seeds` is the number of seeds that ran; `checker` caught the mutant in the last of them, and
    is empty if none did. If tests ran, `seeds` is 0 and `checker` is the test that failed.
    """

    mutant: Mutant
    seeds: int
    seed: int
    checker: str
    violation: str
    seconds: float

    @property
    def is_caught(self) -> bool:
        return bool(self.checker)


def hunt(mutant: Mutant, first: int, count: int) -> Result:
    """Run seeds from `first` on, in a copy of the checkout. Raises Misfit."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kafkapy-mutant-") as folder:
        copy = Path(folder)
        copy_tree(copy)
        edited = copy / mutant.file
        edited.write_text(mutant.apply(edited.read_text()))
        if mutant.tests:
            return _test(mutant, copy, began_s)
        end, start = first + count, first
        found = _judged(copy, start, count)
        while found["checker"] and _judged(ROOT, found["seed"], 1)["checker"]:
            # The seed breaks a promise without the mutant, too.
            start = found["seed"] + 1
            if start == end:
                found |= {"checker": "", "violation": ""}
                break
            found = _judged(copy, start, end - start)
    seeds = found["seed"] - first + 1
    seconds = time.monotonic() - began_s
    return Result(mutant, seeds, found["seed"], found["checker"], found["violation"], seconds)


def _judged(tree: Path, first: int, count: int) -> dict[str, Any]:
    """The `seed` at which a tree was caught, or the last one, with `checker` and `violation`."""
    command = [sys.executable, "-m", "dev.mutate.hunt", str(first), str(count)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    tail = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
    return {"seed": first, "checker": CRASHES, "violation": tail[0]}


def _test(mutant: Mutant, copy: Path, began_s: float) -> Result:
    """Run the tests of a mutant.

    A test catches the mutant if it fails; not if it cannot run, or fails without the mutant, too.
    """
    for name in _TESTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, dirs_exist_ok=True)
        else:
            shutil.copy2(source, copy / name)
    done = _tested(copy, mutant.tests)
    failed = re.search(r"^FAILED (\S+)", done.stdout, re.MULTILINE)
    checker, violation = "", ""
    if done.returncode != 1 or failed is None:
        violation = (done.stdout + done.stderr)[-500:] if done.returncode else ""
    elif _tested(ROOT, mutant.tests).returncode:
        violation = f"without the mutant, too: {failed[0]}"
    else:
        checker = failed[1].partition("[")[0].rpartition("/")[2].replace("::", " ")
        violation = failed[0]
    return Result(mutant, 0, 0, checker, violation, time.monotonic() - began_s)


def _tested(tree: Path, tests: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += tests.split()
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


def copy_tree(target: Path) -> None:
    """Copy the packages that the simulator runs, with their compiled files."""
    for folder in COPIED:
        shutil.copytree(ROOT / folder, target / folder)
    shutil.copy2(ROOT / "dev/__init__.py", target / "dev")


def main(arguments: Sequence[str]) -> None:
    """Print one line of JSON: the last seed, and the checker that caught the mutant."""
    first, count = map(int, arguments)
    seed = first

    def hang(*_: object) -> None:
        _print_result(seed, HANGS, f"a seed takes longer than {_SEED_LIMIT_S} s")
        os._exit(0)

    signal.signal(signal.SIGVTALRM, hang)
    try:
        import kafkapy
        from tests.simulation.simulation import simulate
    except Exception as error:
        _print_result(seed, CRASHES, f"{type(error).__name__}: {error}")
        return
    assert Path(str(kafkapy.__file__)).is_relative_to(Path.cwd()), "this is not the copy"
    for seed in range(first, first + count):
        signal.setitimer(signal.ITIMER_VIRTUAL, _SEED_LIMIT_S)
        try:
            violation = simulate(seed).violation
        except Exception as error:
            violation = f"{CRASHES}: {type(error).__name__}: {error}"
        if violation:
            _print_result(seed, violation.partition(":")[0], violation)
            return
    _print_result(seed, "", "")


def _print_result(seed: int, checker: str, violation: str) -> None:
    print(json.dumps({"seed": seed, "checker": checker, "violation": violation}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
