"""Changes of `kafkapy configs --alter`: the grammar of its values (`ConfigCommand`)."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafkapy.common.errors import ConfigError

# Matches outside of [...]: the next bracket, if any, is an opening one.
_OUTSIDE: Final = r"(?=[^\]]*(?:\[|$))"
_COMMA: Final = re.compile("," + _OUTSIDE)
_EQUALS: Final = re.compile(r"\s*=\s*" + _OUTSIDE)
_FORMAT_VERSION: Final = "message.format.version"
_KEY: Final = re.compile(r"[a-zA-Z0-9._-]*")


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Keys to set and keys to delete."""

    sets: Mapping[str, str] = field(default_factory=dict)
    deletes: Sequence[str] = ()

    def refuse_unknown_deletes(self, present: Container[str]) -> None:
        """
        Raises:
            ConfigError: a key to delete does not exist. The caller must not change anything then.
        """
        unknown = [key for key in self.deletes if key not in present]
        if unknown:
            raise ConfigError(f"Invalid config(s): {','.join(unknown)}")


def parse_add_config(text: str) -> dict[str, str]:
    """Parse `k1=v1,k2=[v1,v2],k3=`. Brackets protect commas and equal signs, and are removed. As in
    Kafka, commas at the end have no effect.

    Raises:
        ConfigError: an item is not key=value, or a key has an invalid character.
    """
    sets: dict[str, str] = {}
    for item in _COMMA.split(text.rstrip(",") or text):
        parts = _EQUALS.split(item)
        if len(parts) != 2:
            raise ConfigError(
                "requirement failed: Invalid entity config: all configs to be added must be in the"
                ' format "key=val".'
            )
        sets[parts[0].strip()] = re.sub(r"[\[\]]", "", parts[1]).strip()
    validate_keys(sets)
    return sets


def validate_keys(sets: Mapping[str, str]) -> None:
    """
    Raises:
        ConfigError: a key has a character other than letters, digits, `.`, `_` and `-`; the message
          has the first such key.
    """
    for key in sets:
        if not _KEY.fullmatch(key):
            raise ConfigError(f"Invalid character found for config key: {key}")


def parse_delete_config(words: Sequence[str]) -> list[str]:
    """Parse `k1,k2` words as keys. As in Kafka, a word of nothing but commas is a key itself."""
    keys = [key for word in words for key in [k for k in word.split(",") if k] or [word]]
    return [key.strip() for key in keys]


def format_version_warnings(sets: Mapping[str, str]) -> list[str]:
    """The warning about `message.format.version`, if it is set, in the words of Kafka 3.9."""
    if _FORMAT_VERSION not in sets:
        return []
    return [
        f"WARNING: The configuration {_FORMAT_VERSION}={sets[_FORMAT_VERSION]} is specified. This"
        " configuration will be ignored if the version is newer than the"
        " inter.broker.protocol.version specified in the broker or if the"
        " inter.broker.protocol.version is 3.0 or newer. This configuration is deprecated and it"
        " will be removed in Apache Kafka 4.0."
    ]
