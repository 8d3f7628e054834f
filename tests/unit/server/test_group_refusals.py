"""Bad input to groups gets the codes and the words of Apache Kafka 4, which were recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages import response_class
from kafkapy.protocol.schema import Message
from tests.harness.cores.hot_path import Client
from tests.harness.cores.server_parts import Parts
from tests.harness.protocol import group_refusals

RECORDED = group_refusals.recorded()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    parts = Parts(Path(tmp_path_factory.mktemp("logs")))
    parts.coordinate()
    parts.waiter.mark_complete()
    for index, topic in enumerate(group_refusals.TOPICS):
        parts.lead(topic)
        parts.announce(topic, topic_id=Uuid(bytes([index + 1] * 16)))
    client = Client(parts)

    def ask(version: int, message: Message) -> Message:
        return client.asks(version, message, response_class(message.API_KEY))

    return group_refusals.answers(ask)


@pytest.mark.parametrize("case", group_refusals.CASES)
def test_the_answer_is_that_of_apache_kafka(case: str, ours: dict[str, list[Any]]) -> None:
    assert ours[case] == RECORDED[case]
