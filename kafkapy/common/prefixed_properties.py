"""Properties with overrides for one listener: `listener.name.<name>.<key>` replaces the plain
`<key>`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError


class PrefixedProperties(NamedTuple):
    """Properties, and the prefixes to try first, in order. The plain name is tried last."""

    properties: Mapping[str, str]
    prefixes: tuple[str, ...] = ()

    def key(self, name: str) -> str:
        """The key under which `name` is set, for messages; `name` itself if it is not."""
        for prefix in self.prefixes:
            if f"{prefix}{name}" in self.properties:
                return f"{prefix}{name}"
        return name

    def key_to_set(self, name: str) -> str:
        """The key under which `name` has a value or, without one, the most specific key for it."""
        key = self.key(name)
        return key if self.properties.get(key) else f"{''.join(self.prefixes[:1])}{name}"

    def get(self, name: str) -> str | None:
        """The value in force, or None."""
        return self.properties.get(self.key(name))

    def text(self, name: str, default: str = "") -> str:
        """The value in force, or `default`."""
        return self.properties.get(self.key(name), default)

    def items(self, name: str, default: str = "") -> list[str]:
        """The members of a comma separated list."""
        return comma_separated(self.text(name, default))

    def number(self, name: str, default: int) -> int:
        """A whole number, 0 or more. Raises ConfigError if the value is another text."""
        text = self.text(name).strip()
        if text and not (text.isascii() and text.isdigit()):
            raise ConfigError(f"{self.key(name)}={text} is not a number, 0 or more")
        return int(text) if text else default

    def with_prefixes(self, *prefixes: str) -> PrefixedProperties:
        """The same properties, with these prefixes tried before the others."""
        return PrefixedProperties(self.properties, (*prefixes, *self.prefixes))


def of_listener(properties: Mapping[str, str], listener: str) -> PrefixedProperties:
    """The properties of a listener, whose name is written in lower case in its prefix."""
    return PrefixedProperties(properties, (f"listener.name.{listener.lower()}.",))
