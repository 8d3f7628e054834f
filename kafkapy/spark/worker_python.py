"""A Python for workers on this machine that imports pyspark from where it is installed.

Spark puts its `pyspark.zip` before all else on PYTHONPATH. The zip has no bytecode, so each Python
process that Spark starts compiles pyspark anew, and before a first batch it starts five, one after
the other. With Spark from pip the same pyspark lies beside it as files that are compiled already.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shlex
from pathlib import Path
from typing import Final

_SCRIPT: Final = """\
#!/bin/sh
# Made by kafkapy spark-submit: Python without Spark's zips of what is installed here as files.
kept=
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
        {lib}/pyspark.zip | {lib}/py4j-*-src.zip) ;;
        *) kept=$kept${{kept:+:}}$entry ;;
    esac
done
PYTHONPATH=$kept
export PYTHONPATH
unset IFS
exec {python} "$@"
"""


def worker_python(python: str, spark_home: Path, cache_dir: Path) -> str:
    """The executable that workers run instead of `python`, which it becomes.

    `python` itself where Spark is not the one that pip installed for it, or nothing can be written.
    The launcher outlives this process, so it is kept in `cache_dir` under a name made of its words.
    """
    if not _is_installed("pyspark", spark_home) or importlib.util.find_spec("py4j") is None:
        return python
    lib = shlex.quote(str(spark_home / "python" / "lib"))
    text = _SCRIPT.format(lib=lib, python=shlex.quote(python))
    launcher = cache_dir / f"python-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not launcher.exists():
        partial = launcher.with_suffix(".part")
        try:
            cache_dir.mkdir(parents=True, exist_ok=True)
            partial.write_text(text)
            partial.chmod(0o755)
            partial.replace(launcher)
        except OSError:
            return python  # slower, and as good
    return str(launcher)


def _is_installed(package: str, directory: Path) -> bool:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return False
    return Path(spec.origin).parent.resolve() == directory.resolve()
