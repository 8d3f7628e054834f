"""A second look at tests that failed on real processes.

`python -m dev.verify.second_look CACHE...`: each CACHE is a pytest cache directory of a run that
failed. A test of real clusters, clients or Spark can lose a race with a busy machine. It runs once
more, alone, and its name is printed in any case, so that every failure is seen. Pure tests (units,
the simulator) fail the same way every time and do not run again; neither do the tests of a run with
many failures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_REAL = tuple(
    f"tests/{part}/" for part in ("cli", "conformance", "integration", "security", "spark")
)
_FAILURES_MAX = 3


def failed_in(caches: list[Path]) -> list[str]:
    """The ids of the tests that failed in the runs of these caches."""
    found: list[str] = []
    for cache in caches:
        file = cache / "v" / "cache" / "lastfailed"
        if file.exists():
            found += json.loads(file.read_text())
    return found


def should_run_again(failed: list[str]) -> bool:
    """Whether a busy machine may have caused these failures."""
    return 0 < len(failed) <= _FAILURES_MAX and all(test.startswith(_REAL) for test in failed)


def main(caches: list[Path]) -> int:
    """Run the failed tests again. Returns 0 if all pass now, otherwise 1."""
    failed = failed_in(caches)
    if not should_run_again(failed):
        return 1
    print("Failed beside the others; each again, alone:", *failed, sep="\n  ", flush=True)
    status = subprocess.run([sys.executable, "-m", "pytest", "-q", *failed]).returncode
    if status == 0:
        print("PASSED ONLY WHEN RUN AGAIN, ALONE:", *failed, sep="\n  ", flush=True)
    return int(status != 0)


if __name__ == "__main__":
    raise SystemExit(main([Path(word) for word in sys.argv[1:]]))
