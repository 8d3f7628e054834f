"""The formatters of the console consumers, by the names of Kafka's classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ConfigError
from kafkapy.tools.console.message_formatter import (
    REGISTRY_DESERIALIZERS,
    Message,
    MessageFormatter,
)

if TYPE_CHECKING:
    from kafkapy.tools.console.internal_formatters import InternalFormatter


class NoOpFormatter(MessageFormatter):
    """Prints nothing. Records are still counted."""

    def format(self, message: Message) -> bytes:
        return b""


_FORMATTERS: Final[Mapping[str, type[MessageFormatter]]] = {
    "DefaultMessageFormatter": MessageFormatter,
    "LoggingMessageFormatter": MessageFormatter,
    "NoOpMessageFormatter": NoOpFormatter,
}


_REGISTRY_FORMATTERS: Final = (
    *("AvroMessageFormatter", "ProtobufMessageFormatter", "JsonSchemaMessageFormatter"),
)


def uses_registry(properties: Mapping[str, str]) -> bool:
    """Whether a property requests that values with schemas are decoded."""
    return any(
        name.endswith("schema.registry.url") or value.rpartition(".")[2] in REGISTRY_DESERIALIZERS
        for name, value in properties.items()
    )


def make_formatter(
    name: str | None, properties: Mapping[str, str]
) -> MessageFormatter | InternalFormatter:
    """The formatter of a class name; without a name, the default one. The formatters of internal
    topics have no properties.

    Raises:
        ConfigError: the formatter is unknown, or a property is wrong.
    """
    short = (name or "DefaultMessageFormatter").rpartition(".")[2]
    formatter = _FORMATTERS.get(short)
    if short in _REGISTRY_FORMATTERS or (
        formatter is MessageFormatter and uses_registry(properties)
    ):
        from kafkapy.tools.console.registry_values import registry_decoder

        return MessageFormatter(properties, registry_decoder(properties))
    if formatter is not None:
        return formatter(properties)
    # Imported here, because most consumers need no schemas.
    from kafkapy.tools.console.internal_formatters import INTERNAL_FORMATTERS

    if short in INTERNAL_FORMATTERS:
        return INTERNAL_FORMATTERS[short]
    known = ", ".join((*_FORMATTERS, *INTERNAL_FORMATTERS))
    raise ConfigError(f"Formatter {name} is not known; known are: {known}")
