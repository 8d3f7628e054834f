"""Previous throttles, saved beside the reassignment file."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from kafkapy.admin.configs import Resource
from kafkapy.common.config_def import ResourceType
from kafkapy.tools.json_input import JsonInputError
from kafkapy.tools.reassign.throttle_record import SavedThrottles, ThrottleRecord, by_resource

PREVIOUS = {
    Resource(ResourceType.BROKER, "1"): {"leader.replication.throttled.rate": "5"},
    Resource(ResourceType.TOPIC, "t"): {"leader.replication.throttled.replicas": "*"},
}


def test_it_is_there_from_writing_to_removal(tmp_path: Path) -> None:
    record = ThrottleRecord(str(tmp_path / "moves.json"), "c")
    assert record.read() == SavedThrottles()
    record.write(PREVIOUS)
    assert record.path == str(tmp_path / "moves.json.throttles")
    assert (
        by_resource(ThrottleRecord(str(tmp_path / "moves.json"), "c").read().previous) == PREVIOUS
    )
    record.remove()
    record.remove()
    assert record.read() == SavedThrottles()


def test_what_this_reassignment_set_is_not_from_before(tmp_path: Path) -> None:
    record = ThrottleRecord(str(tmp_path / "moves.json"), "c")
    broker, topic = PREVIOUS
    assert record.throttles_to_restore(PREVIOUS, [1]) == PREVIOUS
    rate, replicas = "leader.replication.throttled.rate", "leader.replication.throttled.replicas"
    record.write({broker: {rate: "5"}}, {broker: {rate: "7"}, topic: {replicas: "*"}})
    record.write(by_resource(record.read().previous), {broker: {rate: "9"}})
    for mine in ("7", "9"):
        present = {broker: {rate: mine}, topic: {replicas: "*"}}
        assert record.throttles_to_restore(present, [1]) == {broker: {rate: "5"}}
    assert record.throttles_to_restore({broker: {rate: "8"}}, [1]) == {broker: {rate: "8"}}


def test_a_broken_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.throttles").write_text("{")
    with pytest.raises(JsonInputError, match=r"m\.throttles is not a valid JSON"):
        ThrottleRecord(str(tmp_path / "m"), "c").read()


@pytest.mark.parametrize(("kind", "name"), [("user", "1"), ("broker", "one"), ("broker", "-1")])
def test_a_resource_that_has_no_throttles_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    row = {"type": kind, "name": name, "config": "c", "value": "5"}
    (tmp_path / "moves.json.throttles").write_text(json.dumps({"previous": [row]}))
    record = ThrottleRecord(str(tmp_path / "moves.json"), "c")
    with pytest.raises(JsonInputError, match=f"throttles names {kind} '{name}'"):
        record.read()


def test_a_full_disk_takes_no_throttle_away(tmp_path: Path) -> None:
    record = ThrottleRecord(str(tmp_path / "moves.json"), "c")
    record.write(PREVIOUS)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            record.write({}, PREVIOUS)
        record.settle([1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert by_resource(record.read().previous) == PREVIOUS
