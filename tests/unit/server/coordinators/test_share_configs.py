"""Configs of share groups: a group's own come before the broker's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.metadata.group_config import GROUP_CONFIGS
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.replication.partition import READ_COMMITTED, READ_UNCOMMITTED
from kafkapy.replication.shares.share_partition import ShareLimits
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.coordinators.share_configs import ShareConfigs
from kafkapy.server.requests.turns import run_now
from tests.harness.cores.ports import NOW_MS, ManualClock
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.batches import patched
from tests.harness.storage.header_count import HeaderCount

OWN = {
    "share.delivery.count.limit": "2",
    "share.partition.max.record.locks": "100",
    "share.record.lock.duration.ms": "15000",
    "share.renew.acknowledge.enable": "false",
    "share.isolation.level": "read_committed",
}


def configs(own: dict[str, str]) -> ShareConfigs:
    config = KafkaConfig({"broker.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9092"})
    parsed = {name: GROUP_CONFIGS.parse(name, text) for name, text in own.items()}
    return ShareConfigs(config, lambda group_id: parsed if group_id == "own" else {}, ManualClock())


def test_limits_and_isolation() -> None:
    found = configs(OWN)
    assert found.limits("own") == ShareLimits(100, 2, 15_000, may_renew=False)
    assert found.limits("other") == ShareLimits()
    assert found.isolation("own") == READ_COMMITTED
    assert found.isolation("other") == READ_UNCOMMITTED


@pytest.mark.parametrize(
    ("reset", "offset"),
    [
        (None, 9),
        ("earliest", 2),
        ("latest", 9),
        ("by_duration:PT1H", 5),
        ("by_duration:P1DT2H3M4.5S", 5),
        ("by_duration:PT0S", 9),
        (f"by_duration:P{'9' * 400}D", 5),
    ],
)
def test_where_a_share_partition_begins(reset: str | None, offset: int) -> None:
    times: list[int] = []

    def offset_for_timestamp(timestamp: int, upper_bound: int, *search: Any) -> Any:
        times.append(timestamp)
        assert upper_bound == 9
        return None if timestamp == NOW_MS else SimpleNamespace(offset=5)

    log: Any = SimpleNamespace(
        log_start_offset=2,
        high_watermark=9,
        offset_for_timestamp=offset_for_timestamp,
        local=SimpleNamespace(truncation_count=0),
    )
    own = {} if reset is None else {"share.auto.offset.reset": reset}
    assert run_now(configs(own).start_offset("own", lambda: log)) == offset
    if reset == "by_duration:P1DT2H3M4.5S":
        assert times == [NOW_MS - 93_784_500]
    assert all(-1 <= time_ms <= NOW_MS for time_ms in times)


def test_a_group_that_begins_by_duration_in_a_log_of_small_batches_stops_no_other_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All headers of a segment were read in one turn: 50 seconds for 1 GiB."""
    parts = Parts(tmp_path)
    log = parts.lead().log
    batch = build_batch([RecordData(None, b"v" * 40, 5)])
    parts.replicas.append("t", 0, patched(batch, max_timestamp=2**62), 1, 11)
    for _ in range(2000):
        parts.replicas.append("t", 0, batch, 1, 11)
    count = HeaderCount(monkeypatch)
    by_duration = configs({"share.auto.offset.reset": "by_duration:PT1S"})
    assert count.run(by_duration.start_offset("own", lambda: log)) == 2001
    assert max(count.turns) <= 70
    parts.replicas.append("t", 0, build_batch([RecordData(None, b"v", NOW_MS)]), 1, 11)
    parts.replicas.append("t", 0, batch, 1, 11)
    assert count.run(by_duration.start_offset("own", lambda: log)) == 2001
    assert max(count.turns) <= 70
