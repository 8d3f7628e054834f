"""Documentation texts of configs, for clients that request them (DescribeConfigs, KIP-569).

`config_documentation.json` holds the texts of Apache Kafka 3.9.1, word for word, as a broker of
that release sends them; `scripts/conformance --record-configs` writes it. They are part of Apache
Kafka (The Apache Software Foundation), under the Apache License 2.0, as is this project.
The file is read at the first request.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_suffix(".json")


@cache
def _texts() -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return texts


def broker_text(name: str) -> str | None:
    """The text of a broker's config; None where Kafka has none."""
    return _texts()["broker"].get(name)


def topic_text(name: str) -> str | None:
    """The text of a topic's config."""
    return _texts()["topic"].get(name)
