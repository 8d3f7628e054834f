"""Kafka's paths, and names as path parts."""

from __future__ import annotations

import pytest

from kafkapy.zk.stores import paths


def test_paths() -> None:
    assert paths.broker(1) == "/brokers/ids/1"
    assert paths.partition_state("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert paths.partition("t", 3) == "/brokers/topics/t/partitions/3"
    assert paths.partitions("t") == "/brokers/topics/t/partitions"
    assert paths.config("topics", "t") == "/config/topics/t"
    assert paths.delete_topic("t") == "/admin/delete_topics/t"
    assert set(paths.PERSISTENT_PATHS) == {
        *("/consumers", "/brokers/ids", "/brokers/topics", "/config/changes"),
        *("/admin/delete_topics", "/brokers/seqid", "/isr_change_notification"),
        *("/latest_producer_id_block", "/log_dir_event_notification", "/config/topics"),
        *("/config/clients", "/config/users", "/config/brokers", "/config/ips"),
    }


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("alice", "alice"),
        ("User:alice", "User%3Aalice"),
        ("a b", "a%20b"),
        ("a*b+c~d", "a%2Ab%2Bc%7Ed"),
        ("é/", "%C3%A9%2F"),
        ("A-z_0.9", "A-z_0.9"),
    ],
)
def test_names_as_javas_sanitizer_writes_them(name: str, part: str) -> None:
    assert paths.sanitize(name) == part
    assert paths.desanitize(part) == name


def test_sequence_numbers_also_after_they_wrapped() -> None:
    assert paths.sequence_of("config_change_0000000042") == 42
    assert paths.sequence_of("config_change_-2147483648") == -2147483648
