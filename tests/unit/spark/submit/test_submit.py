"""submit: the words that are executed, for every way of writing spark-submit's options."""

from __future__ import annotations

import sys
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.spark.submit import submit
from kafkapy.spark.submit.submit import JobConf, Submission

WIRED = JobConf("logs", "alerts", "/ckpt", {"bootstrap.servers": "b:9092"})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "spark"


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "job.py"
    path.write_text("def main():\n    transform = 1\n")
    return str(path)


def words(line: str, home: Path, job_conf: JobConf = WIRED) -> list[str]:
    return submit.command_line(submit.split(line.split()), job_conf, home, home / "cache")


def confs(command: list[str]) -> dict[str, str]:
    given = [after for word, after in pairwise(command) if word == "--conf"]
    return dict(conf.split("=", 1) for conf in given)


def test_the_script_is_the_first_word_that_is_no_option() -> None:
    line = "--master yarn --verbose --conf a=b --driver-memory=1g job.py --from x -v y"
    assert submit.split(line.split()) == Submission(
        ("--master", "yarn", "--verbose", "--conf", "a=b", "--driver-memory=1g"),
        "job.py",
        ("--from", "x", "-v", "y"),
    )
    assert submit.split(["--kill", "id"]) == Submission(("--kill", "id"), None, ())


def test_topics_are_wired_by_conf_and_everything_else_passes(home: Path, script: str) -> None:
    command = words(f"--master local[2] --name n {script} a --b", home)
    assert command[0] == str(home / "bin" / "spark-submit")
    assert command[1:5] == ["--master", "local[2]", "--name", "n"]
    assert command[-3:] == [script, "a", "--b"]
    assert confs(command) == {
        "spark.kafkapy.from": "logs",
        "spark.kafkapy.to": "alerts",
        "spark.kafkapy.checkpoint": "/ckpt",
        "spark.kafkapy.kafka.bootstrap.servers": "b:9092",
    }


def test_sql_takes_the_place_of_a_script(home: Path) -> None:
    job_conf = JobConf(
        "logs",
        sql="SELECT 1",
        schema="a INT",
        schema_registry="http://r",
        from_subject="s",
        from_message="m",
        from_key_subject="fk",
        from_key_message="fm",
        keep_corrupt_records=True,
        to_subject="t",
        to_message="n",
        to_key_subject="tk",
        to_key_message="tm",
        once=True,
        metrics_port=9404,
        columns="value",
    )
    command = words("--master yarn", home, job_conf)
    assert command[-1].endswith("kafkapy/spark/submit/transform_job.py")
    wired = confs(command)
    assert wired["spark.kafkapy.sql"] == "SELECT 1"
    assert wired["spark.kafkapy.schema"] == "a INT"
    assert wired["spark.kafkapy.schema.registry"] == "http://r"
    assert wired["spark.kafkapy.from.subject"] == "s"
    assert wired["spark.kafkapy.from.message"] == "m"
    assert wired["spark.kafkapy.from.key.subject"] == "fk"
    assert wired["spark.kafkapy.from.key.message"] == "fm"
    assert wired["spark.kafkapy.to.subject"] == "t"
    assert wired["spark.kafkapy.to.message"] == "n"
    assert wired["spark.kafkapy.to.key.subject"] == "tk"
    assert wired["spark.kafkapy.to.key.message"] == "tm"
    assert wired["spark.kafkapy.keep.corrupt.records"] == "true"
    assert wired["spark.kafkapy.once"] == "true"
    assert wired["spark.kafkapy.metrics.port"] == "9404"
    assert wired["spark.kafkapy.columns"] == "value"


@pytest.mark.parametrize(
    ("line", "local"),
    [
        ("", True),
        ("--master local", True),
        ("--master=local[*]", True),
        ("--conf spark.master=local[4]", True),
        ("--master spark://m:7077", False),
        ("--master yarn", False),
        ("--master local-cluster[2,1,1024]", False),
        ("--conf spark.master=k8s://x", False),
    ],
)
def test_the_package_is_shipped_unless_all_is_local(
    line: str, local: bool, home: Path, script: str
) -> None:
    command = words(f"{line} {script}", home)
    assert ("--py-files" not in command) is local


def test_a_master_in_the_defaults_file_counts(home: Path, script: str) -> None:
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "spark-defaults.conf").write_text("# none\nspark.master   spark://m:7077\n")
    assert "--py-files" in words(script, home)
    assert "--py-files" not in words(f"--master local {script}", home)


def test_executors_get_the_package_when_only_the_loaded_defaults_name_the_cluster(
    tmp_path: Path, home: Path, script: str
) -> None:
    """With --load-spark-defaults, Spark reads the defaults too, after the property file."""
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "spark-defaults.conf").write_text("spark.master yarn\n")
    own, other = tmp_path / "own.conf", tmp_path / "other.conf"
    own.write_text("spark.ui.enabled false\n")
    other.write_text("spark.master local[2]\n")
    assert "--py-files" not in words(f"--properties-file {own} {script}", home)
    loaded = f"--load-spark-defaults --properties-file {own}"
    assert "--py-files" in words(f"{loaded} {script}", home)
    assert "--py-files" not in words(f"{loaded} --properties-file {other} {script}", home)


@pytest.mark.parametrize(
    "line", [b"spark.master\tyarn", b"spark.master: yarn", b"# \xe9\r\n  spark.master = yarn"]
)
def test_the_defaults_file_is_read_as_spark_reads_it(home: Path, script: str, line: bytes) -> None:
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "spark-defaults.conf").write_bytes(line + b"\n")
    assert "--py-files" in words(script, home)


def test_a_master_in_the_environment_counts(
    tmp_path: Path, home: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of SPARK_CONF_DIR takes the place of that in Spark's home, and precedes MASTER."""
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn\n")
    given = {"SPARK_CONF_DIR": str(tmp_path)}
    with monkeypatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(tmp_path))
        assert "--py-files" in words(script, home)
    submission = submit.split([script])
    assert not submit.is_local(submission, home, given)
    assert not submit.is_local(submission, home, {**given, "MASTER": "local"})
    assert not submit.is_local(submission, home, {"MASTER": "spark://m:7077"})
    assert submit.is_local(submission, home, {"MASTER": "local[2]"})
    assert submit.is_local(submit.split(["--master", "local", script]), home, given)


def test_the_users_own_py_files_stay(home: Path, script: str) -> None:
    command = words(f"--master yarn --py-files a.zip,b.py --py-files=c.egg {script}", home)
    assert command.count("--py-files") == 1
    a, b, c, package = command[command.index("--py-files") + 1].split(",")
    assert (a, b, c) == ("a.zip", "b.py", "c.egg")
    assert Path(package).exists()


@pytest.mark.parametrize("place", ["conf", "file"])
def test_files_of_the_users_settings_stay(place: str, home: Path, tmp_path: Path) -> None:
    job = tmp_path / "t.py"
    job.write_text("def transform(df):\n    return df\n")
    settings = {"spark.submit.pyFiles": "a.zip,b.py", "spark.files": "c.csv"}
    line = "--master yarn "
    if place == "conf":
        line += "".join(f"--conf {name}={value} " for name, value in settings.items())
    else:
        (home / "conf").mkdir(parents=True)
        text = "".join(f"{name} {value}\n" for name, value in settings.items())
        (home / "conf" / "spark-defaults.conf").write_text(text)
    command = words(f"{line}{job}", home, JobConf(source="t"))
    assert command[command.index("--py-files") + 1].startswith("a.zip,b.py,")
    assert command[command.index("--files") + 1] == f"c.csv,{job}"
    flags = words(f"{line}--py-files d.py --files e.csv {job}", home, JobConf(source="t"))
    assert flags[flags.index("--py-files") + 1].startswith("d.py,/")  # which Spark prefers
    assert f"e.csv,{job}" in flags


def test_the_zip_is_complete_made_once_and_found_by_spark(tmp_path: Path) -> None:
    first = submit.package_zip(tmp_path)
    assert submit.package_zip(tmp_path) == first
    with zipfile.ZipFile(first) as archive:
        names = set(archive.namelist())
    assert {"pyspark_kafkapy.py", "kafkapy/__init__.py", "kafkapy/record/columns.py"} <= names
    assert not any("__pycache__" in name for name in names)


def test_a_user_without_a_writable_home_learns_where_the_package_can_lie(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no directory")
    with pytest.raises(ConfigError, match=r"/cache/kafkapy: Not a directory.*set XDG_CACHE_HOME"):
        submit.package_zip(tmp_path / "cache" / "kafkapy")


def test_a_transform_is_run_by_its_own_job(tmp_path: Path, home: Path) -> None:
    script = tmp_path / "t.py"
    script.write_text("def transform(df):\n    return df\n")
    command = words(f"--master local {script} x", home)
    assert command[-3].endswith("kafkapy/spark/submit/transform_job.py")
    assert command[-2:] == [str(script), "x"]
    remote = words(f"--master yarn --files a.txt {script}", home)
    assert remote[remote.index("--files", remote.index("--files") + 1) + 1] == f"a.txt,{script}"
    assert words(str(script), home, JobConf())[-1] == str(script)


@pytest.mark.parametrize(
    ("flag", "wired"),
    [
        ("--once", replace(WIRED, once=True)),
        ("--schema", replace(WIRED, schema="a INT")),
        ("--metrics-port", replace(WIRED, metrics_port=9404)),
    ],
)
def test_a_stream_that_should_end_does_not_run_for_ever_because_its_script_is_no_transform(
    flag: str, wired: JobConf, home: Path, script: str, tmp_path: Path
) -> None:
    """A script that writes its own stream never saw these flags."""
    with pytest.raises(ConfigError, match=f"{flag} would have no effect: .* transform"):
        words(script, home, wired)
    job = tmp_path / "t.py"
    job.write_text("def transform(df):\n    return df\n")
    assert words(str(job), home, wired)[-1] == str(job)
    with pytest.raises(ConfigError, match="--from"):
        words(str(job), home, replace(wired, source=None))


@pytest.mark.parametrize("url", ["local:///opt/job.py", "hdfs://n:8020/job.py", "s3a://b/job.py"])
def test_a_script_in_an_image_or_a_store_can_read_topics(url: str, home: Path) -> None:
    """Kubernetes and YARN find it; this machine cannot read it."""
    assert words(f"--master k8s://h --deploy-mode cluster {url} x", home)[-2:] == [url, "x"]


def test_a_script_that_cannot_be_read(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read the script nowhere\.py"):
        words("nowhere.py", home)
    broken = tmp_path / "broken.py"
    broken.write_text("def (")
    with pytest.raises(ConfigError, match="is not Python"):
        words(str(broken), home)


@pytest.mark.parametrize("line", ["--master yarn job.py", "--master local job.py"])
def test_workers_run_this_python(home: Path, line: str) -> None:
    submission = submit.split(line.split())

    def environment(environ: dict[str, str]) -> dict[str, str]:
        return submit.environment(environ, submission, home, home / "cache")

    env = environment({"PATH": "/bin"})
    assert env["PYSPARK_PYTHON"] == env["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert env["PATH"] == "/bin"
    assert environment({"PYSPARK_PYTHON": "other"})["PYSPARK_PYTHON"] == "other"
    assert environment({"PYSPARK_PYTHON": sys.executable}) == environment({})


def test_local_workers_import_the_pyspark_that_is_installed(tmp_path: Path) -> None:
    spark_home = submit.find_spark_home({})
    local, remote = (
        submit.environment({}, submit.split(["--master", master, "x"]), spark_home, tmp_path)
        for master in ("local[2]", "spark://elsewhere:7077")
    )
    assert remote["PYSPARK_PYTHON"] == sys.executable  # other machines do not have our launcher
    assert local["PYSPARK_PYTHON"] == local["PYSPARK_DRIVER_PYTHON"] != sys.executable
    exported = {"PYSPARK_PYTHON": sys.executable}
    again = submit.environment(
        exported, submit.split(["--master", "local", "x"]), spark_home, tmp_path
    )
    assert again == local


def test_spark_is_the_users_or_pysparks() -> None:
    assert submit.find_spark_home({"SPARK_HOME": "/opt/spark"}) == Path("/opt/spark")
    assert (submit.find_spark_home({}) / "bin" / "spark-submit").exists()


def test_a_fork_server_is_for_python_jobs_whose_workers_are_ours(home: Path, script: str) -> None:
    cache = home / "cache"
    ours, theirs = (
        {"PYSPARK_PYTHON": str(at / "python-1"), "PYSPARK_DRIVER_PYTHON": str(cache / "python-1")}
        for at in (cache, home)
    )
    job = words(f"--master local {script}", home)
    assert submit.uses_worker_python(job, ours, cache)
    assert not submit.uses_worker_python(job, theirs, cache)
    assert not submit.uses_worker_python(words("--class Main job.jar x.py", home), ours, cache)
    other = words(f"--conf spark.pyspark.python=python3 {script}", home)
    assert not submit.uses_worker_python(other, ours, cache)
    assert not submit.uses_worker_python(words("--version", home), ours, cache)
    query = replace(WIRED, sql="SELECT 1")
    assert submit.uses_worker_python(words("--name n", home, query), ours, cache)


def test_a_conf_is_added_unless_it_is_given() -> None:
    assert submit.split(["a.py"]).with_conf("x", "1").options == ("--conf", "x=1")
    given = submit.split(["--conf", "x=2", "a.py"])
    assert given.with_conf("x", "1") is given


def test_java_is_looked_for_as_spark_does(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is none: install Java 17"):
        submit.check_java({"PATH": str(tmp_path)})
    with pytest.raises(ConfigError, match="has no bin/java"):
        submit.check_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.touch(0o755)
    submit.check_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    submit.check_java({"PATH": str(java.parent)})
