"""Imports of each command whose start is measured: counts modules, not seconds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from dev.bench.tool_starts import COMMANDS, FILE_COMMANDS, STEPS, files
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.kafkapy_process import Kafkapy
from tests.harness.tools.tool_lines import Steps, parse_line

# Each of these takes from half a millisecond to half a start.
NEVER = frozenset(
    {
        *("typer", "rich", "asyncio", "ssl", "logging", "concurrent", "subprocess", "shutil"),
        *("argparse", "email", "importlib.metadata", "pathlib", "urllib.parse", "difflib"),
        *("datetime", "random", "uuid", "encodings.idna", "kazoo", "orjson", "confluent_kafka"),
        *("numpy", "pyarrow", "prometheus_client", "uvloop", "crc32c", "cramjam", "kafkapy.server"),
    }
)
# 178 of the largest, when this was written; Python's own are 30 to 40 of them, and 14 are packages
# without code of their own.
MODULES_MAX = 184
PROGRAM = """
import sys
from kafkapy.cli.main import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def places(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, str | Path]:
    """A topic, a group and files, as the benchmark has them."""
    directory = tmp_path_factory.mktemp("starts")
    files(directory)
    servers = broker.bootstrap_servers
    Kafkapy(servers)("topics", "--create", "--topic", "orders", "--partitions", "4")
    steps = Steps(servers, directory)
    for step in STEPS:
        steps.do(parse_line(step))
    (log,) = broker.log_dir.glob("orders-0/*.log")
    return {"servers": servers, "directory": directory, "log": log}


@pytest.mark.parametrize("text", [*COMMANDS, *FILE_COMMANDS])
def test_a_start_imports_little(text: str, places: Mapping[str, str | Path]) -> None:
    line = parse_line(text.replace("{LOG}", str(places["log"])))
    words = line.arguments(str(places["servers"]), Path(places["directory"]))
    program = [sys.executable, "-c", PROGRAM, line.words[0], *words]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    *said, modules = done.stderr.splitlines()
    imported = modules.split()
    assert done.returncode == 0, said
    assert sorted(NEVER.intersection(imported)) == []
    assert len(imported) <= MODULES_MAX
