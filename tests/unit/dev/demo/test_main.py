"""scripts/demo, as it runs on a machine that has nothing but the package."""

from __future__ import annotations

import subprocess
import sys

from dev.report import ROOT

WITHOUT_TEST_TOOLS = """
import sys

sys.modules.update(dict.fromkeys(("pytest", "hypothesis", "tests")))
import dev.demo.main
"""


def test_the_demo_needs_only_what_it_installs() -> None:
    """It installs the extra `spark`, without the packages for tests."""
    command = [sys.executable, "-c", WITHOUT_TEST_TOOLS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
