"""Tests of `dev.simulate.code_digest`: prose does not change the digest, and code does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dev.simulate.code_digest import SIMULATED_PACKAGES, code_digest

CODE = '''"""A module."""

LIMIT = 1
"""Offsets a batch."""

def after(offset: int) -> int:
    """The next offset."""
    return offset + 1
'''


def _digest(directory: Path, source: str, name: str = "offsets.py") -> str:
    package = directory / "storage"
    package.mkdir(exist_ok=True)
    for path in package.iterdir():
        path.unlink()
    (package / name).write_text(source)
    return code_digest(directory, ("storage",))


def test_prose_and_layout_keep_the_digest(tmp_path: Path) -> None:
    reworded = CODE.replace("A module.", "Offsets.").replace("The next", "Returns the next")
    reworded = reworded.replace("Offsets a batch", "The number of offsets in a batch")
    reworded = reworded.replace("    return", "\n    # Offsets have no gaps.\n    return")
    assert _digest(tmp_path, reworded) == _digest(tmp_path, CODE)
    without = CODE.replace('    """The next offset."""\n', "")
    assert _digest(tmp_path, without) == _digest(tmp_path, CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ 1", "+ 2"),
        ("+ 1", "- 1"),
        ("offset + 1", "0"),
        ("offset + 1", "None"),
        ("offset + 1", "''"),
        ("    return offset", "    ('a tuple',)\n    return offset"),
        ("def after", "async def after"),
        ("int) ->", "int, epoch: int = 0) ->"),
    ],
)
def test_code_changes_the_digest(tmp_path: Path, old: str, new: str) -> None:
    changed = CODE.replace(old, new)
    assert changed != CODE
    assert _digest(tmp_path, changed) != _digest(tmp_path, CODE)


def test_the_name_of_a_module_changes_the_digest(tmp_path: Path) -> None:
    assert _digest(tmp_path, CODE, "other.py") != _digest(tmp_path, CODE)


def test_a_seed_runs_code_of_the_digested_packages_only() -> None:
    program = """
import sys
from tests.simulation.simulation import simulate
simulate(0)
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("kafkapy.")}))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    )
    assert tuple(ran.stdout.split()) == SIMULATED_PACKAGES
