"""The Python of local workers is the one asked for, but for Spark's zips on its path."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy.spark.submit import submit
from kafkapy.spark.workers.fork_server_launcher import SOCKET_VARIABLE
from kafkapy.spark.workers.worker_python import worker_python

SPARK_HOME = submit.find_spark_home({})
LIB = SPARK_HOME / "python" / "lib"
ZIPS = sorted(str(path) for path in LIB.glob("*.zip"))


def printed(python: str, code: str, *arguments: str, **environ: str) -> str:
    done = subprocess.run(
        [python, "-c", code, *arguments],
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_it_is_that_python_without_the_zips(tmp_path: Path) -> None:
    python = worker_python(sys.executable, SPARK_HOME, tmp_path / "a cache")
    (tmp_path / "a path of another").mkdir()
    mine = str(tmp_path / "a path of *")
    jars = [str(path) for path in (SPARK_HOME / "jars").glob("spark-core_*.jar")]
    encoded = "/a%20blank/pyspark/jars/spark-core_2.13-4.3.0.jar"  # as the JVM writes it
    path = os.pathsep.join([*ZIPS, *jars, encoded, mine])
    assert (len(ZIPS), len(jars)) == (2, 1)
    kept = printed(python, "import os; print(os.environ['PYTHONPATH'])", PYTHONPATH=path)
    assert kept == mine
    code = "import sys; print(sys.executable, sys.argv[1:])"
    told = printed(python, code, "two words", "*", PYTHONPATH=path)
    assert told == f"{sys.executable} ['two words', '*']"
    # Without the launcher it is the zip's.
    found = "import importlib.util as u; print(u.find_spec('pyspark').origin)"
    assert printed(sys.executable, found, PYTHONPATH=path).startswith(ZIPS[-1])
    assert printed(python, found, PYTHONPATH=path) == str(SPARK_HOME / "__init__.py")


@pytest.mark.parametrize(
    ("words", "is_asked"),
    [
        (["-m", "pyspark.find_spark_home"], True),
        (["-m", "compileall", "-h"], False),
        (["-c", "pass", "-m", "pyspark.daemon"], False),
    ],
)
def test_only_pyspark_asks_for_a_fork_server(
    words: list[str], is_asked: bool, tmp_path: Path
) -> None:
    python = worker_python(sys.executable, SPARK_HOME, tmp_path)
    with socket.socket(socket.AF_UNIX) as fork_server:
        fork_server.bind(str(tmp_path / "fork-server"))
        fork_server.listen()
        fork_server.settimeout(20)
        environ = {"PATH": os.environ["PATH"], SOCKET_VARIABLE: str(tmp_path / "fork-server")}
        with subprocess.Popen([python, *words], env=environ, stdout=subprocess.PIPE) as process:
            if is_asked:
                fork_server.accept()[0].close()
            process.communicate()
            assert process.returncode == 0  # it went on alone
            fork_server.setblocking(False)
            with pytest.raises(BlockingIOError):
                fork_server.accept()


def test_it_is_made_once(tmp_path: Path) -> None:
    first = worker_python(sys.executable, SPARK_HOME, tmp_path)
    made = os.stat(first).st_mtime_ns
    assert worker_python(sys.executable, SPARK_HOME, tmp_path) == first
    assert os.stat(first).st_mtime_ns == made
    assert worker_python("/usr/bin/another", SPARK_HOME, tmp_path) != first
    assert len(list(tmp_path.iterdir())) == 2


def test_another_spark_keeps_its_own_pyspark(tmp_path: Path) -> None:
    assert worker_python(sys.executable, tmp_path, tmp_path / "cache") == sys.executable
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert worker_python(sys.executable, SPARK_HOME, tmp_path / "cache") == sys.executable


def test_a_cache_that_is_mounted_noexec_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark could start no Python: "error=13, Permission denied"."""

    def access(path: Path, mode: int) -> bool:  # as on such a mount, which only root can make
        return mode != os.X_OK

    monkeypatch.setattr(os, "access", access)
    assert worker_python(sys.executable, SPARK_HOME, tmp_path) == sys.executable
