"""Records the throttles from before a reassignment, in a small file beside the reassignment's.

After the moves Kafka's tool deletes every throttle. Here earlier throttles are saved, and
`--verify` restores them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from kafkapy.admin.configs import Resource
from kafkapy.common.config_def import ResourceType
from kafkapy.tools.json_input import parse_json, read_text

SUFFIX: Final = ".throttles"
_VERSION: Final = 1
_TYPES: Final = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER}

Throttles = Mapping[Resource, Mapping[str, str]]
"""Values of throttle configs, by resource and key."""


class ThrottleRecord:
    """The file of one reassignment. It exists only while throttles must be restored."""

    def __init__(self, reassignment_path: str) -> None:
        self.path = reassignment_path + SUFFIX

    def read(self) -> dict[Resource, dict[str, str]]:
        """The throttles to restore; none without a file.

        Raises:
            JsonInputError: the file is malformed.
        """
        if not os.path.exists(self.path):
            return {}
        root = parse_json(read_text(self.path), f"{self.path} is not a valid JSON")
        found: dict[Resource, dict[str, str]] = {}
        for row in root.field("previous").items():
            resource = Resource(_TYPES[row.field("type").text()], row.field("name").text())
            found.setdefault(resource, {})[row.field("config").text()] = row.field("value").text()
        return found

    def write(self, previous: Throttles) -> None:
        """Save the throttles to restore.

        Raises:
            OSError: the file cannot be written.
        """
        words = {kind: word for word, kind in _TYPES.items()}
        rows = [
            {"type": words[resource.type], "name": resource.name, "config": key, "value": value}
            for resource, configs in previous.items()
            for key, value in configs.items()
        ]
        with open(self.path, "w") as file:
            file.write(json.dumps({"version": _VERSION, "previous": rows}) + "\n")

    def remove(self) -> None:
        """Remove the file, because nothing must be restored."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)
