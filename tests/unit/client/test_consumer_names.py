"""consumer_names: the names of Kafka 3.9's consumer, and those of its producer."""

from __future__ import annotations

import pytest

from kafkapy.client.consumer_names import CONSUMER_ONLY, is_client_name
from kafkapy.client.producer_settings import is_producer_name


@pytest.mark.parametrize(
    "name", ["isolation.level", "acks", "request.timeout.ms", "sasl.mechanism", "client.rack"]
)
def test_names_of_either_client(name: str) -> None:
    assert is_client_name(name)


def test_a_mistyped_name_is_none() -> None:
    assert not is_client_name("isolation.levle")


def test_a_name_of_both_is_not_only_the_consumers() -> None:
    assert [name for name in CONSUMER_ONLY if is_producer_name(name)] == []
