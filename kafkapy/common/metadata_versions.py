"""Names of Kafka's releases, as in `message.format.version` (`MetadataVersionValidator`)."""

from __future__ import annotations

from typing import Final

from kafkapy.common.config_def import ConfigValue, Validator
from kafkapy.common.errors import ConfigError

_LAST_CHANGES: Final = {
    "0.10.0": 1, "0.10.1": 2, "0.10.2": 0, "0.11.0": 2, "1.0": 0, "1.1": 0, "2.0": 1, "2.1": 2,
    "2.2": 1, "2.3": 1, "2.4": 1, "2.5": 0, "2.6": 0, "2.7": 2, "2.8": 1, "3.0": 1, "3.1": 0,
    "3.2": 0, "3.3": 3, "3.4": 0, "3.5": 2, "3.6": 2, "3.7": 4, "3.8": 0, "3.9": 0, "4.0": 1,
}  # fmt: skip
"""The last internal version of each release: `3.5` has `3.5-IV0` to `3.5-IV2`."""

_VERSIONS: Final = (
    *("0.8.0", "0.8.1", "0.8.2", "0.9.0"),
    *(f"{release}-IV{i}" for release, last in _LAST_CHANGES.items() for i in range(last + 1)),
)
_NAMES: Final = {*_VERSIONS, *_LAST_CHANGES} - {"4.0"}  # Kafka 3.9 has only parts of 4.0


def metadata_version() -> tuple[Validator, str]:
    """A release that Kafka 3.9 knows: `3.5`, `3.5-IV2`, or with more numbers, `3.5.1`."""
    return _check, f"[{', '.join(_VERSIONS)}]"


def _check(name: str, value: ConfigValue) -> None:
    text = str(value)
    parts = text.rstrip(".").split(".")
    significant = 3 if text.startswith("0.") else 2
    if (".".join(parts[:significant]) if len(parts) > significant else text) not in _NAMES:
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: Version {text} is not a valid version"
        )
