"""The command line of spark-submit, with the topics and the package. Pure except for reads.

Spark's own launcher does the rest, so all of its flags work. By default workers run the same Python
as the command; executors on other machines get the package as a zip.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import kafkapy
from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError
from kafkapy.common.java_properties import parse_properties
from kafkapy.spark.submit.secret_properties import (
    PUBLIC_PROPERTIES,
    REDACTION,
    file_text,
    private_conf,
)
from kafkapy.spark.submit.session import (
    CHECKPOINT,
    COLUMNS,
    FROM,
    FROM_KEY_MESSAGE,
    FROM_KEY_SUBJECT,
    FROM_MESSAGE,
    FROM_SUBJECT,
    KEEP_CORRUPT_RECORDS,
    METRICS_PORT,
    ONCE,
    PROPERTY,
    SCHEMA,
    SCHEMA_REGISTRY,
    SQL,
    TO,
    TO_KEY_MESSAGE,
    TO_KEY_SUBJECT,
    TO_MESSAGE,
    TO_SUBJECT,
)
from kafkapy.spark.workers.kept_files import cached_file
from kafkapy.spark.workers.worker_python import PYTHON_VARIABLES, installed_spark, worker_python

FLAGS: Final = frozenset(
    ("--supervise", "--verbose", "-v", "--version", "--usage-error", "--load-spark-defaults")
)
"""The options of spark-submit that take no value."""

_PYTHON_CONFS: Final = frozenset(("spark.pyspark.python", "spark.pyspark.driver.python"))
_ENTRY_MODULES: Final = ("pyspark_kafkapy.py", "pyspark_kafkapy_segments.py")
_URL: Final = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*:/")
_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)  # the same files give the same zip


@dataclass(frozen=True, slots=True)
class JobConf:
    """The topics that a job reads and writes, and the cluster's address and properties."""

    source: str | None = None
    target: str | None = None
    checkpoint: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    sql: str | None = None
    schema: str | None = None
    schema_registry: str | None = None
    from_subject: str | None = None
    from_message: str | None = None
    from_key_subject: str | None = None
    from_key_message: str | None = None
    keep_corrupt_records: bool = False
    to_subject: str | None = None
    to_message: str | None = None
    to_key_subject: str | None = None
    to_key_message: str | None = None
    once: bool = False
    metrics_port: int | None = None
    columns: str | None = None

    def conf(self) -> dict[str, str]:
        """The Spark conf that passes this to the driver, without the properties that may be secret,
        which are in a file.
        """
        conf = {
            FROM: self.source,
            COLUMNS: self.columns,
            TO: self.target,
            CHECKPOINT: self.checkpoint,
            SQL: self.sql,
            SCHEMA: self.schema,
            SCHEMA_REGISTRY: self.schema_registry,
            FROM_SUBJECT: self.from_subject,
            FROM_MESSAGE: self.from_message,
            FROM_KEY_SUBJECT: self.from_key_subject,
            FROM_KEY_MESSAGE: self.from_key_message,
            KEEP_CORRUPT_RECORDS: "true" if self.keep_corrupt_records else None,
            TO_SUBJECT: self.to_subject,
            TO_MESSAGE: self.to_message,
            TO_KEY_SUBJECT: self.to_key_subject,
            TO_KEY_MESSAGE: self.to_key_message,
            ONCE: "true" if self.once else None,
            METRICS_PORT: None if self.metrics_port is None else str(self.metrics_port),
        }
        properties = {PROPERTY + k: v for k, v in self.properties.items() if k in PUBLIC_PROPERTIES}
        return {name: value for name, value in conf.items() if value is not None} | properties

    def flags_of_transforms(self) -> list[str]:
        """The given flags that only `transform_job` reads."""
        given = {
            "--schema": self.schema is not None,
            "--once": self.once,
            "--metrics-port": self.metrics_port is not None,
        }
        return [name for name, is_given in given.items() if is_given]


@dataclass(frozen=True, slots=True)
class Submission:
    """A spark-submit command line: its options, the script, the script's arguments."""

    options: tuple[str, ...]
    script: str | None
    arguments: tuple[str, ...]

    def values(self, name: str) -> list[str]:
        """Every value of an option, written `--name value` or `--name=value`."""
        separate = [after for word, after in pairwise(self.options) if word == name]
        joined = [word.partition("=")[2] for word in self.options if word.startswith(name + "=")]
        return separate + joined

    def confs(self) -> list[tuple[str, str]]:
        """The Spark confs that the user gives."""
        given = (conf.partition("=") for conf in self.values("--conf") + self.values("-c"))
        return [(name.strip(), value) for name, _, value in given]

    def with_conf(self, name: str, value: str) -> Submission:
        """The command line with a Spark conf, unless the user sets it."""
        if name in dict(self.confs()):
            return self
        return replace(self, options=("--conf", f"{name}={value}", *self.options))

    def without(self, name: str) -> tuple[str, ...]:
        """The options without `name` and its values."""
        remaining: list[str] = []
        rest = iter(self.options)
        for word in rest:
            if word == name:
                next(rest, None)
            elif not word.startswith(name + "="):
                remaining.append(word)
        return tuple(remaining)


def split(words: Sequence[str]) -> Submission:
    """Find the script: the first word that is neither an option nor an option's value."""
    i = 0
    while i < len(words) and words[i].startswith("-"):
        takes_next = words[i] not in FLAGS and "=" not in words[i]
        i += 2 if takes_next else 1
    script = words[i] if i < len(words) else None
    return Submission(tuple(words[:i]), script, tuple(words[i + 1 :]))


def properties_of(
    submission: Submission, job_conf: JobConf, spark_home: Path, environ: Mapping[str, str]
) -> bytes | None:
    """The content of a property file with the properties that may be secret, values beyond ASCII,
    and the properties of the file that it replaces. None if there are none of the first two.

    In some locales, such as LC_ALL=C, a JVM replaces letters beyond ASCII in a command line: a
    query would find no rows.

    Raises:
        ConfigError: the user's own property file cannot be read.
    """
    conf = private_conf(job_conf.properties) | {
        name: value for name, value in job_conf.conf().items() if not value.isascii()
    }
    if not conf:
        return None
    file = property_files(submission, spark_home, environ)[0]
    base = file if submission.values("--properties-file") or file.is_file() else None
    redacts = REDACTION in dict(submission.confs()) or bool(
        _in_files(submission, spark_home, environ, REDACTION)
    )
    try:
        return file_text(base, conf, redacts=redacts)
    except OSError as error:
        raise ConfigError(f"Cannot read {base}: {error.strerror}") from None


def command_line(
    submission: Submission,
    job_conf: JobConf,
    spark_home: Path,
    cache_dir: Path,
    properties_file: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> list[str]:
    """The command line to execute. `properties_file` replaces the user's. `environ` is the
    environment of the command, by default this process's.

    `transform_job` runs SQL. It also runs a script that defines `transform(df)`, if there is a
    topic to read.

    Raises:
        ConfigError: the script cannot be read, or a flag would have no effect on it; or the package
          for the executors cannot be written.
    """
    environ = os.environ if environ is None else environ
    remote = not is_local(submission, spark_home, environ)
    user_options = submission.without("--py-files")
    if properties_file is not None:
        user_options = Submission(user_options, None, ()).without("--properties-file")
    options = list(user_options)
    if properties_file is not None:
        options += ["--properties-file", properties_file]
    setting_items = partial(_setting_items, submission, spark_home, environ)
    py_files = submission.values("--py-files")
    if remote:
        py_files = [
            *(py_files or setting_items("spark.submit.pyFiles")),
            str(package_zip(cache_dir)),
        ]
    if py_files:
        options += ["--py-files", ",".join(py_files)]
    for name, value in job_conf.conf().items():
        if value.isascii():  # others are in the property file
            options += ["--conf", f"{name}={value}"]
    script, arguments = submission.script, submission.arguments
    if job_conf.sql is not None:
        script = _transform_job()
    elif script is not None and job_conf.source is not None and defines_transform(script):
        arguments = (script, *arguments)
        if remote:
            files = submission.values("--files") or setting_items("spark.files")
            options += ["--files", ",".join([*files, script])]
        script = _transform_job()
    elif flags := job_conf.flags_of_transforms():
        raise ConfigError(
            f"{', '.join(flags)} would have no effect: only --sql uses it, and with --from a "
            "script that defines transform(df)"
        )
    words = [str(spark_home / "bin" / "spark-submit"), *options]
    return [*words, *((script, *arguments) if script is not None else ())]


def _transform_job() -> str:
    """The file of the script that runs a transform."""
    job = importlib.util.find_spec("kafkapy.spark.submit.transform_job")
    assert job is not None
    assert job.origin is not None
    return job.origin


def environment(
    environ: Mapping[str, str], submission: Submission, spark_home: Path, cache_dir: Path
) -> dict[str, str]:
    """The environment of the command, with this Python for workers. Otherwise workers would run any
    `python3` on their PATH. A PYSPARK_PYTHON that is this Python counts as unset.
    """
    python = sys.executable
    if is_local(submission, spark_home, environ):
        python = worker_python(python, spark_home, cache_dir)
    defaults = {"SPARK_HOME": str(spark_home), **dict.fromkeys(PYTHON_VARIABLES, python)}
    given = {k: v for k, v in environ.items() if k not in PYTHON_VARIABLES or v != sys.executable}
    return defaults | given


def uses_worker_python(words: Sequence[str], environ: Mapping[str, str], cache_dir: Path) -> bool:
    """Whether a command line runs Python with the workers' Python of `environment`."""
    submission = split(words[1:])
    others = [name for name, _ in submission.confs() if name in _PYTHON_CONFS]
    is_worker_python = (
        all(Path(environ[name]).parent == cache_dir for name in PYTHON_VARIABLES) and not others
    )
    return is_worker_python and (submission.script or "").endswith(".py")


def find_spark_home(environ: Mapping[str, str]) -> Path:
    """`SPARK_HOME`, or the Spark in the installed pyspark.

    Raises:
        ConfigError: pyspark is not installed.
    """
    if "SPARK_HOME" in environ:
        return Path(environ["SPARK_HOME"])
    installed = installed_spark()
    if installed is None:
        raise ConfigError("pyspark is not installed: pip install '.[spark]' in a clone of kafkapy")
    return installed


def check_java(environ: Mapping[str, str]) -> None:
    """Check that Spark can find Java.

    Raises:
        ConfigError: it cannot.
    """
    home = environ.get("JAVA_HOME")
    install = "install Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless)"
    if home:
        if not os.access(Path(home, "bin", "java"), os.X_OK):
            raise ConfigError(f"Spark needs Java, and JAVA_HOME={home} has no bin/java: {install}")
    elif shutil.which("java", path=environ.get("PATH", os.defpath)) is None:
        raise ConfigError(f"Spark needs Java, and there is none: {install}, or set JAVA_HOME")


def is_local(submission: Submission, spark_home: Path, environ: Mapping[str, str]) -> bool:
    """Whether everything runs on this machine, where the package is installed."""
    masters = submission.values("--master") + submission.values("--remote")
    masters += [value for name, value in submission.confs() if name == "spark.master"]
    if not masters:
        masters = _in_files(submission, spark_home, environ, "spark.master")
    if not masters and environ.get("MASTER"):  # as in SparkSubmitArguments
        masters = [environ["MASTER"]]
    return all(master == "local" or master.startswith("local[") for master in masters)


def _setting_items(
    submission: Submission, spark_home: Path, environ: Mapping[str, str], name: str
) -> list[str]:
    """The items of a setting. Spark ignores the setting if the flag for it is given."""
    values = [value for key, value in submission.confs() if key == name][-1:]
    if not values:
        values = _in_files(submission, spark_home, environ, name)
    return comma_separated(",".join(values))


def _in_files(
    submission: Submission, spark_home: Path, environ: Mapping[str, str], name: str
) -> list[str]:
    """The value of a setting in the property files, if any."""
    files = property_files(submission, spark_home, environ)
    return [value for file in files if (value := _setting_in(file, name))][:1]


def property_files(
    submission: Submission, spark_home: Path, environ: Mapping[str, str]
) -> list[Path]:
    """The property files that spark-submit reads. The first one takes precedence."""
    files = [Path(file) for file in submission.values("--properties-file")[-1:]]
    if not files or "--load-spark-defaults" in submission.options:
        files.append(conf_directory(spark_home, environ) / "spark-defaults.conf")
    return files


def conf_directory(spark_home: Path, environ: Mapping[str, str]) -> Path:
    """The directory with Spark's configuration."""
    return Path(environ.get("SPARK_CONF_DIR") or spark_home / "conf")


def _setting_in(properties_file: Path, name: str) -> str | None:
    """A setting of a property file, which Spark reads as Java's properties."""
    if not properties_file.is_file():
        return None
    text = properties_file.read_text(encoding="utf-8", errors="replace")
    value = parse_properties(text).get(name)
    return None if value is None else value.strip()


def defines_transform(script: str) -> bool:
    """Whether a Python file defines `transform` at its top level. The file is not run. A script on
    other machines, such as `local:///opt/job.py` in an image, counts as one that does not.

    Raises:
        ConfigError: the file cannot be read or is not Python.
    """
    if not script.endswith(".py") or _URL.match(script):
        return False
    try:
        tree = ast.parse(Path(script).read_bytes(), script)
    except OSError as error:
        raise ConfigError(f"Cannot read the script {script}: {error.strerror}") from None
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"The script {script} is not Python: {error}") from None
    return any(isinstance(node, ast.FunctionDef) and node.name == "transform" for node in tree.body)


def package_zip(cache_dir: Path) -> Path:
    """The package as a zip for `--py-files`, created once for each state of the sources.

    Raises:
        ConfigError: it cannot be written to `cache_dir`.
    """
    root = Path(kafkapy.__file__).parent
    sources = {
        str(Path("kafkapy", path.relative_to(root))): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.suffix == ".py" or path.name == "py.typed"
    }
    sources |= {name: (root.parent / name).read_bytes() for name in _ENTRY_MODULES}
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sources.items():
            archive.writestr(zipfile.ZipInfo(name, _ZIP_TIME), content, zipfile.ZIP_DEFLATED)
    try:
        return cached_file(cache_dir, f"kafkapy-{kafkapy.__version__}", ".zip", data.getvalue())
    except OSError as error:
        raise ConfigError(
            f"Cannot write the package for the executors to {error.filename}: {error.strerror}; "
            "set XDG_CACHE_HOME to a directory that you may write"
        ) from None
