"""Fixtures, found by pytest wherever kafkapy is installed.

    def test_orders(kafkapy_broker, kafkapy_topic):
        place_order(kafkapy_broker.bootstrap_servers, kafkapy_topic)
        [record] = kafkapy_broker.records(kafkapy_topic)

One broker serves a whole run of tests; each test has a topic of its own. A test that stops or kills
its broker makes one for itself: `with KafkaBroker() as broker`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from kafkapy.testing import KafkaBroker

_NAME_CHARS_MAX = 200


@pytest.fixture(scope="session")
def kafkapy_properties() -> Mapping[str, str]:
    """Properties of the run's broker, as in server.properties: a conftest.py may have others."""
    return {}


@pytest.fixture(scope="session")
def kafkapy_broker(kafkapy_properties: Mapping[str, str]) -> Iterator[KafkaBroker]:
    """The run's broker: a process of its own, on a free port, its records in a temporary
    directory."""
    # Imported only here: pytest loads this module in every run.
    from kafkapy.testing import KafkaBroker

    with KafkaBroker(kafkapy_properties) as broker:
        yield broker


@pytest.fixture
def kafkapy_topic(kafkapy_broker: KafkaBroker, request: pytest.FixtureRequest) -> str:
    """A new topic of one partition, named after the test."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", request.node.name)[:_NAME_CHARS_MAX]
    return kafkapy_broker.create_topic(f"{name}-{uuid4().hex[:8]}")
