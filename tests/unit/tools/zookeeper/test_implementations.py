"""The names that the command line and cluster.json use."""

from __future__ import annotations

from kafkapy.tools.zookeeper.implementations import Implementation


def test_the_names() -> None:
    assert [str(each) for each in Implementation] == ["kafkapy", "apache"]
