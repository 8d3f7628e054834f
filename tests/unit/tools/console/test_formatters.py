"""Formatters by the names of Kafka's classes."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.console.formatters import make_formatter
from kafkapy.tools.console.message_formatter import Message

RECORD = Message("t", 3, 42, 1700, "CreateTime", b"k", b"v", [])


def test_formatters_by_class_name() -> None:
    assert make_formatter(None, {}).format(RECORD) == b"v\n"
    default = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
    assert make_formatter(default, {}).format(RECORD) == b"v\n"
    assert make_formatter("kafka.tools.NoOpMessageFormatter", {}).format(RECORD) == b""
    with pytest.raises(ConfigError, match=r"Formatter x\.Mine is not known; .*OffsetsMessage"):
        make_formatter("x.Mine", {})
