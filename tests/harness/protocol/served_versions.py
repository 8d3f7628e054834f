"""Tests of an API in each version that our broker serves."""

from __future__ import annotations

import pytest

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.server.api.handlers import SERVED


def versions(key: ApiKey) -> range:
    return range(SERVED[key].min_version, SERVED[key].max_version + 1)


def each_version(key: ApiKey) -> pytest.MarkDecorator:
    """Call a test with each `version`."""
    return pytest.mark.parametrize("version", versions(key))
