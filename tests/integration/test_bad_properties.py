"""A bad server.properties: the broker does not start, and says key, value and what is allowed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.processes.broker_process import ServerProcess

KAFKAPY = Path(sys.executable).parent / "kafkapy"

# (key, value, words the message must have besides)
BAD = [
    ("log.segment.bytes", "plenty", ["INT"]),
    ("log.segment.bytes", "3", ["at least 14"]),
    ("log.cleanup.policy", "shred", ["compact", "delete"]),
    ("compression.type", "rar", ["gzip", "snappy", "lz4", "zstd", "producer"]),
    ("log.cleaner.enable", "perhaps", ["true", "false"]),
    ("num.partitions", "0", ["at least 1"]),
    ("listeners", "PLAINTEXT//nowhere", []),
    ("log.cleaner.min.cleanable.ratio", "2.0", ["no more than 1"]),
]


@pytest.mark.parametrize(("key", "value", "words"), BAD, ids=[f"{k}={v}" for k, v, _ in BAD])
def test_bad_property_is_named(tmp_path: Path, key: str, value: str, words: list[str]) -> None:
    properties = tmp_path / "server.properties"
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": f"{tmp_path}/logs", key: value}
    properties.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    command = [str(KAFKAPY), "server", "start", str(properties)]
    broker = ServerProcess(command, 0, tmp_path / "said", "kafkapy broker")
    broker.launch()
    assert broker.wait() != 0
    said = broker.output_text()
    assert "Traceback" not in said
    for word in (key, value, *words):
        assert word in said


def test_missing_properties_file_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "absent.properties")
    done = subprocess.run(
        [KAFKAPY, "server", "start", path], capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert path in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
