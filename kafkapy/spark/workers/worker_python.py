"""A Python for workers on this machine that imports the installed pyspark.

Spark puts its `pyspark.zip` first on PYTHONPATH. The zip has no bytecode, so each Python process
compiles pyspark again, and Spark starts five, one after the other, before a first batch. With Spark
from pip the same pyspark is also installed as files with bytecode.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
from pathlib import Path
from typing import Final

from kafkapy.spark.workers import fork_server_launcher
from kafkapy.spark.workers.fork_server_launcher import SOCKET_VARIABLE
from kafkapy.spark.workers.kept_files import cached_file

PYTHON_VARIABLES: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
"""The environment variables by which Spark finds its Python."""

_SCRIPT: Final = """\
#!/bin/sh
# Made by kafkapy: Python without Spark's zips of what is installed here as files.
kept=
IFS=:
set -f
for entry in $PYTHONPATH; do
    case $entry in
        {home}/python/lib/pyspark.zip | {home}/python/lib/py4j-*-src.zip) ;;
        # Written as in a URL, with %20 for a blank. It has no Python, and thousands of names.
        */jars/spark-core_*.jar) ;;
        *) kept=$kept${{kept:+:}}$entry ;;
    esac
done
PYTHONPATH=$kept
export PYTHONPATH
unset IFS
case ${{{variable}:+$1 $2}} in
    "-m pyspark."*) exec {python} -I -S {launcher} "$@" ;;
esac
exec {python} "$@"
"""


def worker_python(python: str, spark_home: Path, cache_dir: Path) -> str:
    """The executable for workers, which executes `python` with the installed pyspark.

    Returns `python` itself if Spark was not installed by pip for it, or if `cache_dir` cannot be
    written, or is on a file system that runs no programs (noexec).
    """
    installed = installed_spark()
    if installed is None or installed.resolve() != spark_home.resolve():
        return python
    if importlib.util.find_spec("py4j") is None:
        return python
    text = _SCRIPT.format(
        home=shlex.quote(str(spark_home)),
        python=shlex.quote(python),
        variable=SOCKET_VARIABLE,
        launcher=shlex.quote(fork_server_launcher.__file__),
    )
    try:
        script = cached_file(cache_dir, "python", "", text.encode(), executable=True)
    except OSError:
        return python  # slower, but equivalent
    return str(script) if os.access(script, os.X_OK) else python


def installed_spark() -> Path | None:
    """The home of the Spark in this Python's pyspark package."""
    spec = importlib.util.find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent
