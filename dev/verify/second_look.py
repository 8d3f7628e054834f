"""A second look at tests that failed on real processes.

`python -m dev.verify.second_look CACHE...`: each CACHE is a pytest cache directory of a run that
failed. A test of real clusters, clients or Spark can lose a race with a busy machine; it is run
once more, alone, and named either way, so
that nothing passes unseen. What is pure (units, the simulator) fails the same way every time and
gets no second look, and neither does a run with many failures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_REAL = tuple(
    f"tests/{part}/" for part in ("cli", "conformance", "integration", "security", "spark")
)
_MOST = 3


def failed_in(caches: list[Path]) -> list[str]:
    """The ids of the tests that failed in the runs of these caches."""
    found: list[str] = []
    for cache in caches:
        file = cache / "v" / "cache" / "lastfailed"
        if file.exists():
            found += json.loads(file.read_text())
    return found


def deserves_another(failed: list[str]) -> bool:
    """Whether these failures may be the machine's and not the code's."""
    return 0 < len(failed) <= _MOST and all(test.startswith(_REAL) for test in failed)


def main(caches: list[Path]) -> int:
    """0 when every test that failed passes now."""
    failed = failed_in(caches)
    if not deserves_another(failed):
        return 1
    print("Failed beside the others; each again, alone:", *failed, sep="\n  ", flush=True)
    status = subprocess.run([sys.executable, "-m", "pytest", "-q", *failed]).returncode
    if status == 0:
        print("PASSED ONLY WHEN RUN AGAIN, ALONE:", *failed, sep="\n  ", flush=True)
    return int(status != 0)


if __name__ == "__main__":
    raise SystemExit(main([Path(word) for word in sys.argv[1:]]))
