"""One configuration a topic, which follows the broker's and the topic's changes."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.storage.log_configs import LogConfigs


def test_the_logs_of_a_topic_share_one() -> None:
    configs = LogConfigs({"log.retention.ms": 5})
    configs.set_overrides("t", {"segment.bytes": "2000"})
    found = configs.of("t")
    assert (found.retention_ms, found.segment_bytes) == (5, 2000)
    configs.set_overrides("t", {"segment.bytes": "2000"})
    assert configs.of("t") is found
    assert configs.of("u").segment_bytes != 2000


def test_each_change_is_followed() -> None:
    configs = LogConfigs({"log.retention.ms": 5})
    assert configs.of("t").retention_ms == 5
    configs.set_overrides("t", {"segment.bytes": "2000"})
    assert configs.of("t").segment_bytes == 2000
    configs.set_defaults({"log.retention.ms": 6})
    assert (configs.of("t").retention_ms, configs.of("t").segment_bytes) == (6, 2000)
    assert configs.change("t", {"retention.ms": "7"}) is configs.of("t")
    assert configs.of("t").retention_ms == 7
    assert configs.of("t").segment_bytes != 2000


def test_overrides_that_are_not_allowed_change_nothing() -> None:
    configs = LogConfigs({})
    configs.set_overrides("t", {"segment.bytes": "2000"})
    with pytest.raises(ConfigError, match=r"segment\.bytes"):
        configs.change("t", {"segment.bytes": "many"})
    assert configs.of("t").segment_bytes == 2000
