"""Typed configuration tables (`org.apache.kafka.common.config.ConfigDef`).

A table is a tuple of `ConfigKey`. `ConfigDef` parses text against it, and raises errors in Kafka's
words. Parsed values are plain Python: int, float, bool, str, list[str] or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import DOUBLE, real

ConfigValue = int | float | bool | str | list[str] | None
Validator = Callable[[str, ConfigValue], None]

_BITS: Final = {"short": 16, "int": 32, "long": 64}


class ConfigType(IntEnum):
    """Types with the ids that DescribeConfigs v3+ sends."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """The source of an effective value, with DescribeConfigs' ids."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ResourceType(IntEnum):
    """The types of resources that have configs (`ConfigResource.Type`)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ListingRule(IntEnum):
    """When DescribeConfigs lists a key: always; only if it is set, as Kafka's internal keys; or, if
    it is set, as a plug-in's key, whose type and value are not in Kafka's table."""

    ALWAYS = 0
    IF_SET = 1
    IF_SET_AS_PLUGIN = 2


class ConfigKey(NamedTuple):
    """One configuration key.

    `default` is the parsed default. `synonyms` of a topic key are the broker keys that set its
    default; the first one has the topic key's unit. `allowed` describes the valid values in the
    documentation. `documentation` is for kafkapy's own keys; Kafka's texts are in a file.
    """

    name: str
    type: ConfigType
    default: ConfigValue = None
    validator: Validator | None = None
    allowed: str = ""
    synonyms: tuple[str, ...] = ()
    documentation: str = ""
    listed: ListingRule = ListingRule.ALWAYS

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD


def at_least(low: float) -> tuple[Validator, str]:
    """A number not below `low`."""

    def check(name: str, value: ConfigValue) -> None:
        if value is None or (isinstance(value, int | float) and value >= low):
            return
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: Value must be at least {low}"
        )

    return check, f"[{low},...]"


def between(low: float, high: float) -> tuple[Validator, str]:
    """A number in [low, high]."""

    def check(name: str, value: ConfigValue) -> None:
        if value is None or not isinstance(value, int | float):
            return
        if value < low:
            raise ConfigError(
                f"Invalid value {value} for configuration {name}: Value must be at least {low}"
            )
        if value > high:
            raise ConfigError(
                f"Invalid value {value} for configuration {name}: Value must be no more than {high}"
            )

    return check, f"[{low},...,{high}]"


def one_of(*choices: str, any_case: bool = False) -> tuple[Validator, str]:
    """One of a few words, in upper or lower case if `any_case`."""
    how = " (case insensitive)" if any_case else ""

    def check(name: str, value: ConfigValue) -> None:
        if (str(value).lower() if any_case else value) not in choices:
            raise ConfigError(
                f"Invalid value {value} for configuration {name}: "
                f"String must be one of{how}: {', '.join(choices)}"
            )

    return check, f"[{', '.join(choices)}]"


def list_of(*choices: str) -> tuple[Validator, str]:
    """A list whose members are all among a few words."""

    def check(name: str, value: ConfigValue) -> None:
        for item in value if isinstance(value, list) else ():
            if item not in choices:
                raise ConfigError(
                    f"Invalid value {item} for configuration {name}: "
                    f"String must be one of: {', '.join(choices)}"
                )

    return check, f"[{', '.join(choices)}]"


def matching(pattern: str, description: str) -> tuple[Validator, str]:
    """A list whose members all match a regular expression."""
    compiled = re.compile(pattern)

    def check(name: str, value: ConfigValue) -> None:
        items = value if isinstance(value, list) else [str(value)]
        if not all(compiled.fullmatch(item) for item in items):
            shown = ", ".join(items)
            raise ConfigError(
                f"Invalid value [{shown}] for configuration {name}: {name} must be {description}"
            )

    return check, description


def parse_value(name: str, kind: ConfigType, text: str | None) -> ConfigValue:
    """Read `text` as `kind`.

    Raises:
        ConfigError: the text is not valid; the message is that of `ConfigDef.parseType`.
    """
    if text is None:
        return None
    text = text.strip()
    if kind is ConfigType.BOOLEAN:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: "
            "Expected value to be either true or false"
        )
    if kind in (ConfigType.INT, ConfigType.SHORT, ConfigType.LONG):
        word = kind.name.lower()
        limit = 1 << (_BITS[word] - 1)
        # Python parses at most 4,300 digits.
        if re.fullmatch(r"[+-]?[0-9]{1,4000}", text) and -limit <= int(text) < limit:
            return int(text)
        size = f"{_BITS[word]}-bit integer"
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: Not a number of type {kind.name}"
            f" ({size})"
        )
    if kind is ConfigType.DOUBLE:
        try:
            return float(text)
        except ValueError:
            raise ConfigError(
                f"Invalid value {text} for configuration {name}: Not a number of type DOUBLE"
            ) from None
    if kind is ConfigType.LIST:
        return [item.strip() for item in text.split(",")] if text else []
    return text


def format_value(value: ConfigValue) -> str | None:
    """The text form that DescribeConfigs and property files use."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, float):
        return real(DOUBLE, value)
    return str(value)


class ConfigDef:
    """A table of keys with parsing."""

    def __init__(self, keys: Iterable[ConfigKey]) -> None:
        self.keys: dict[str, ConfigKey] = {key.name: key for key in keys}

    def parse(self, name: str, text: str | None) -> ConfigValue:
        """Parse and validate one known key.

        Raises:
            ConfigError: the key is unknown or the value is not allowed.
        """
        key = self.keys.get(name)
        if key is None:
            raise ConfigError(f"Unknown configuration '{name}'")
        value = parse_value(name, key.type, text)
        if key.validator is not None:
            key.validator(name, value)
        return value

    def parse_all(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        """Values for every key of the table: given ones parsed, the others at their defaults."""
        return {
            name: self.parse(name, properties[name]) if name in properties else key.default
            for name, key in self.keys.items()
        }
