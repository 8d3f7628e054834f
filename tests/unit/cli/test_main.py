"""The process: what nobody expected, and what a start imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafkapy.cli.main import surprise

# None of these may be imported by a command that describes topics on a pipe: start-up is a feature.
HEAVY = (
    "asyncio",
    "kazoo",
    "numpy",
    "pyarrow",
    "rich",
    "confluent_kafka",
    "ssl",
    "prometheus_client",
)


def test_what_nobody_expected_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["kafkapy", "topics"])
    surprise(ValueError, ValueError("odd"), None)
    assert capsys.readouterr().err.splitlines() == [
        "kafkapy: ValueError: odd",
        "This is a fault of kafkapy; --debug shows where it comes from.",
    ]
    monkeypatch.setattr(sys, "argv", ["kafkapy", "topics", "--debug"])
    surprise(ValueError, ValueError("odd"), None)
    assert "ValueError: odd" in capsys.readouterr().err


def test_describing_topics_on_a_pipe_imports_nothing_heavy() -> None:
    program = """
import sys
from tests.support.cli import kafkapy
from tests.support.describing import CLUSTER
outcome = kafkapy("topics", "--describe", "--bootstrap-server", "b:1", cluster=CLUSTER)
assert "Topic: t\\tPartition: 0" in outcome.stdout, outcome
print(" ".join(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    imported = set(done.stdout.split())
    assert "kafkapy.admin.topic_descriptions" in imported
    assert sorted(imported.intersection(HEAVY)) == []
