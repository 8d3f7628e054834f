"""Documentation texts of configs: Kafka's, and only for clients that ask."""

from __future__ import annotations

import subprocess
import sys

from kafkapy.common.config_def import ListingRule
from kafkapy.common.topic_configs import TOPIC_CONFIGS
from kafkapy.server.config.broker_config_table import BROKER_CONFIG_ROWS
from kafkapy.server.config.config_documentation import broker_text, topic_text


def test_every_key_that_is_listed_has_a_text() -> None:
    listed = [key for key in BROKER_CONFIG_ROWS if key.listed is ListingRule.ALWAYS]
    assert [key.name for key in listed if not (key.documentation or broker_text(key.name))] == []
    assert [name for name in TOPIC_CONFIGS.keys if not topic_text(name)] == []


def test_kafka_has_one_place_for_each_text() -> None:
    """A text of ours would hide Kafka's."""
    own = {key.name for key in BROKER_CONFIG_ROWS if key.documentation}
    assert {name.partition(".")[0] for name in own} == {"kafkapy", "share", "group"}
    assert not [name for name in own if broker_text(name) is not None]
    assert broker_text("an.own.key") is None


def test_a_broker_that_nobody_asks_does_not_read_them() -> None:
    code = (
        "import kafkapy.server.broker, kafkapy.server.api.handlers\n"
        "from kafkapy.server.config import config_documentation as texts\n"
        "assert texts._texts.cache_info().currsize == 0\n"
        "texts.broker_text('log.dirs')\n"
        "assert texts._texts.cache_info().currsize == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
