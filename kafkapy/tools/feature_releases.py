"""Levels of features by release of Kafka, as in Kafka 4.3's `kafka-features.sh`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkapy.common.errors import ConfigError

METADATA_VERSION: Final = "metadata.version"
_FIRST_LEVEL: Final = 7
RELEASES: Final = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1"),
    *("4.3-IV0", "4.4-IV0"),
)
LATEST: Final = "4.3-IV0"
"""The last release that is not in development."""
_SINCE: Final[Mapping[str, tuple[int, str]]] = {
    "kraft.version": (1, "3.9-IV0"),
    "transaction.version": (2, "4.0-IV2"),
    "group.version": (1, "4.0-IV0"),
    "eligible.leader.replicas.version": (1, "4.1-IV0"),
    "share.version": (1, "4.2-IV0"),
    "streams.version": (1, "4.2-IV1"),
}
"""The level of each feature, and the first release that sets it. Earlier releases set 0."""
_NEEDS: Final = {("eligible.leader.replicas.version", 1): "4.0-IV1"}


def release_of_level(level: int) -> str:
    """The release of a level of `metadata.version`."""
    index = level - _FIRST_LEVEL
    return RELEASES[index] if 0 <= index < len(RELEASES) else f"UNKNOWN [{level}]"


def levels_of_release(release: str) -> dict[str, int]:
    """The levels that a release sets. `4.0` means the last release with that prefix, `4.0-IV3`.

    Raises:
        ConfigError: the release is not known.
    """
    named = [name for name in RELEASES if name == release or name.startswith(f"{release}-")]
    if not named:
        raise ConfigError(
            f"Unknown metadata.version '{release}'. Supported metadata.version are: "
            + ", ".join(RELEASES)
        )
    index = RELEASES.index(named[-1])
    of_features = {
        name: level if RELEASES.index(first) <= index else 0
        for name, (level, first) in _SINCE.items()
    }
    return {METADATA_VERSION: _FIRST_LEVEL + index, **of_features}


def dependency_of(name: str, level: int) -> str | None:
    """The release that a feature's level requires, if it requires one.

    Raises:
        ConfigError: the feature or its level is not known.
    """
    if name == METADATA_VERSION:
        if release_of_level(level) not in RELEASES:
            raise ConfigError(f"No feature:{name} with feature level {level}")
        return None
    if name not in _SINCE:
        raise ConfigError(f"Unknown feature: {name}")
    if not 0 <= level <= _SINCE[name][0]:
        raise ConfigError(f"No feature:{name} with feature level {level}")
    return _NEEDS.get((name, level))


def level_text(name: str, level: int) -> str:
    """A level as Kafka's tool prints it: the release for `metadata.version`, else the number."""
    return release_of_level(level) if name == METADATA_VERSION else str(level)


def version_text(name: str, level: int) -> str:
    """`metadata.version=25 (4.0-IV3)`."""
    text = f"{name}={level}"
    return f"{text} ({release_of_level(level)})" if name == METADATA_VERSION else text


def level_of_metadata(release: str) -> int:
    """The level of `metadata.version` of a release.

    Raises:
        ConfigError: the release is not known.
    """
    return levels_of_release(release)[METADATA_VERSION]
