"""Forked workers for a session that a script, a notebook or a test creates, on this machine.

`kafkapy spark-submit` sets them up before it starts the JVM. Here pyspark starts the JVM, with the
environment of this process at that time.
"""

from __future__ import annotations

import os
import sys
from typing import Final

_GATEWAY_PORT_VARIABLE: Final = "PYSPARK_GATEWAY_PORT"
"""The environment variable by which the driver finds a JVM that already runs."""


def prepare_local_workers() -> bool:
    """Make Spark fork its Python workers from a preloaded process.

    Call it before the `SparkSession` is created, for a local master only: other machines do not
    have the Python that the environment then names. Calling it again does nothing.

    Returns whether it took effect. Workers start in Spark's usual, slower way if a session exists
    already, if `PYSPARK_PYTHON` names another Python, if another Spark than pyspark's own runs, or
    if the user's cache is not writable.
    """
    # Imported here, because workers import this package and do not need these modules.
    from kafkapy.spark.workers.fork_server_launcher import SOCKET_VARIABLE

    if SOCKET_VARIABLE in os.environ:
        return True  # set by `kafkapy spark-submit`, or by an earlier call

    from pyspark import SparkContext

    from kafkapy.spark.workers import fork_server
    from kafkapy.spark.workers.kept_files import cache_dir
    from kafkapy.spark.workers.worker_python import PYTHON_VARIABLES, installed_spark, worker_python

    home = installed_spark()
    if home is None or os.environ.get("SPARK_HOME") not in (None, str(home)):
        return False
    if _GATEWAY_PORT_VARIABLE in os.environ or SparkContext._gateway is not None:
        return False
    if any(os.environ.get(name, sys.executable) != sys.executable for name in PYTHON_VARIABLES):
        return False
    python = worker_python(sys.executable, home, cache_dir())
    if python == sys.executable:
        return False
    variables = dict.fromkeys(PYTHON_VARIABLES, python)
    server = fork_server.start({**os.environ, **variables}, is_for_next_program=False)
    os.environ.update(variables if server is None else variables | server.environ)
    return server is not None
