"""packages: a missing package is named before the registry starts."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.schemas import packages
from kafkapy.schemas.packages import require_packages


def test_missing_packages_are_named_for_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    require_packages()

    def find_spec(name: str) -> object:
        return None if name in ("avro", "grpc_tools") else object()

    monkeypatch.setattr(packages, "find_spec", find_spec)
    with pytest.raises(ConfigError, match="needs avro grpcio-tools: pip install avro grpcio"):
        require_packages()
