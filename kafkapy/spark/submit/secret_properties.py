"""Passes client properties to Spark: never on a command line, which every user of the machine can
read (`ps`), and redacted in Spark's displays of its configuration.

They are in a property file that only this process, and the program that it executes, can open: an
unnamed file in memory, which ends with them. On systems without these files (not Linux), it is a
file in a directory of its own, which a child process removes after the end of Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kafkapy.common.java_properties import format_properties
from kafkapy.spark.submit.session import PROPERTY

PUBLIC_PROPERTIES: Final = frozenset(("bootstrap.servers",))
REDACTION: Final = "spark.redaction.regex"
# Spark's default, and Kafka's properties with secrets that the default does not match.
_REDACTION_PATTERN: Final = (
    r"(?i)secret|password|token|access[.]?key|jaas|keystore[.]key|ssl[.]key|user[.]info"
)
_MODE: Final = 0o600


def private_conf(properties: Mapping[str, str]) -> dict[str, str]:
    """The Spark conf of the properties that must not be on a command line."""
    return {PROPERTY + k: v for k, v in properties.items() if k not in PUBLIC_PROPERTIES}


def file_text(base: Path | None, conf: Mapping[str, str], *, redacts: bool) -> bytes:
    """The text of a property file with the content of `base`, and `conf`. `redacts`: the user has
    set `spark.redaction.regex` on the command line.

    Raises:
        OSError: `base` cannot be read.
    """
    text = b"" if base is None else base.read_bytes() + b"\n"
    if not redacts and not re.search(rb"(?m)^\s*spark\.redaction\.regex\b", text):
        conf = {**conf, REDACTION: _REDACTION_PATTERN}
    return text + format_properties(conf).encode("ascii")


def properties_file(content: bytes) -> str:
    """The path of a file with this content, for this process and the program that it executes.

    Raises:
        OSError: the file cannot be created.
    """
    if not hasattr(os, "memfd_create"):
        return _named_file(content)
    fd = os.memfd_create("spark.properties", 0)  # inherited by the next program
    os.fchmod(fd, _MODE)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    return f"/proc/self/fd/{fd}"


def _named_file(content: bytes) -> str:
    directory = tempfile.mkdtemp(prefix="kafkapy-spark-")  # only this user may enter it
    path = Path(directory, "spark.properties")
    path.touch(_MODE)
    path.write_bytes(content)
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)  # closed at the end of the next program
    if os.fork() == 0:
        os.close(write_end)
        os.setsid()
        os.read(read_end, 1)
        shutil.rmtree(directory, ignore_errors=True)
        os._exit(0)
    os.close(read_end)
    return str(path)
