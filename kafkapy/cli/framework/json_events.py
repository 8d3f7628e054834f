"""Events of the verifiable clients: one JSON object on each line."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.cli.framework.environment import Environment


def emitter(env: Environment) -> Callable[[str, Mapping[str, Any]], None]:
    """A function that writes an event, its time and name first, and flushes it for readers."""

    def emit(name: str, fields: Mapping[str, Any]) -> None:
        event = {"timestamp": int(time.time() * 1000), "name": name, **fields}
        env.line(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
        env.stdout.flush()

    return emit
