"""Spark jobs as processes of their own; all processes of a job have ended at its end."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dev.verify.leftovers import VARIABLE, marked, outlives

LIMIT_S = 60.0


@contextmanager
def running_job(
    command: Sequence[str], log: Path, **environ: str
) -> Iterator[subprocess.Popen[str]]:
    """Run a job, whose output the caller reads.

    All processes of the job have its mark in their environment, and must have ended at the end. Its
    JVM has its temporary files beside the log: a JVM that is killed leaves them.
    """
    mark = str(uuid.uuid4())
    options = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -Djava.io.tmpdir={log.parent}"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={
                **os.environ,
                "SPARK_SUBMIT_OPTS": options,
                **environ,
                "KAFKAPY_TEST_RUN": mark,
            },
            start_new_session=True,
        ) as process,
    ):
        yield process
        process.wait(LIMIT_S)
    left = [command for pid, command in marked({VARIABLE: mark}) if outlives(pid, LIMIT_S)]
    assert not left


def printed(process: subprocess.Popen[str]) -> dict[str, str]:
    """The lines of a job by their first words."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    return {word: rest for word, _, rest in (line.partition(" ") for line in lines)}
