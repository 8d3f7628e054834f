"""Fixtures that pytest loads wherever kafkapy is installed.

    def test_orders(kafkapy_broker, kafkapy_topic):
        place_order(kafkapy_broker.bootstrap_servers, kafkapy_topic)
        [record] = kafkapy_broker.records(kafkapy_topic)

All tests of a run share one broker; each test has its own topic. A test that stops or kills its
broker creates its own: `with KafkaBroker() as broker`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from kafkapy.testing import KafkaBroker, SchemaRegistry

_NAME_CHARS_MAX = 200


@pytest.fixture(scope="session")
def kafkapy_properties() -> Mapping[str, object]:
    """The broker's properties, as in server.properties. A conftest.py may override this fixture,
    with the same scope."""
    return {}


@pytest.fixture(scope="session")
def kafkapy_client_properties() -> Mapping[str, object]:
    """The login and the trusted certificates of the fixtures, as in client.properties, for a broker
    whose first listener requires them. A conftest.py may override this fixture, with the same
    scope."""
    return {}


@pytest.fixture(scope="session")
def kafkapy_broker(
    kafkapy_properties: Mapping[str, object], kafkapy_client_properties: Mapping[str, object]
) -> Iterator[KafkaBroker]:
    """The broker of the test run: a separate process on a free port, with its records in a
    temporary directory."""
    # Imported only here: pytest loads this module in every run.
    from kafkapy.testing import KafkaBroker

    with KafkaBroker(kafkapy_properties, client_properties=kafkapy_client_properties) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafkapy_schema_registry(kafkapy_broker: KafkaBroker) -> Iterator[SchemaRegistry]:
    """The schema registry of the test run, which stores its schemas in `kafkapy_broker`. It needs
    the extra `schemas`."""
    from kafkapy.testing import SchemaRegistry

    servers, properties = kafkapy_broker.bootstrap_servers, kafkapy_broker.client_properties
    with SchemaRegistry(servers, properties) as registry:
        yield registry


@pytest.fixture
def kafkapy_topic(kafkapy_broker: KafkaBroker, request: pytest.FixtureRequest) -> str:
    """A new topic of one partition, named after the test."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", request.node.name)[:_NAME_CHARS_MAX]
    return kafkapy_broker.create_topic(f"{name}-{uuid4().hex[:8]}")
