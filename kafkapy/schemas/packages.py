"""The packages of the extra `schemas`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from kafkapy.common.errors import ConfigError

_PACKAGES: Final = {
    "aiohttp": "aiohttp",
    "avro": "avro",
    "fastavro": "fastavro",
    "jsonschema": "jsonschema",
    "grpc_tools": "grpcio-tools",
    "google.type": "googleapis-common-protos",
}


def require_packages(user: str = "the schema registry") -> None:
    """
    Raises:
        ConfigError: some are not installed; with their names for pip.
    """
    missing = [package for module, package in _PACKAGES.items() if find_spec(module) is None]
    if missing:
        names = " ".join(missing)
        raise ConfigError(f"{user} needs {names}: pip install {names}")
