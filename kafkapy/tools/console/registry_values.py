"""Values with schemas in the console tools: their JSON, with the property schema.registry.url.

Confluent's tools have a class for each type of schemas. Here all of their names mean the same,
because the registry knows the type of a schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.common.java_numbers import is_natural
from kafkapy.tools.console.line_reader import Encode
from kafkapy.tools.console.message_formatter import Message, SchemaDecoder

_URL: Final = "schema.registry.url"
_USER_INFO: Final = "basic.auth.user.info"
# Kafka's own consumer hands these, without the prefix, to the class of a deserializer.
_PREFIXES: Final = ("", "value.deserializer.", "key.deserializer.")


def registry_decoder(properties: Mapping[str, str]) -> SchemaDecoder:
    """A decoder to JSON. Bytes without the id of a schema stay as they are.

    Raises:
        ConfigError: the URL is missing or wrong, or a package is missing.
    """
    from kafkapy.schemas.packages import require_packages

    require_packages(_URL)
    from kafkapy.schemas.value_json import ValueJson
    from kafkapy.schemas.wire_format import SCHEMA_ID_HEADERS, CorruptValue, split_id

    values = ValueJson(_client(properties))

    def read(part: str, raw: bytes, message: Message) -> bytes:
        name = SCHEMA_ID_HEADERS[part]
        found = split_id(raw, dict(message.headers or ()).get(name))
        if found is None:
            return raw
        try:
            return values.decode(*found)
        except (CorruptValue, KafkapyError) as error:
            raise ConfigError(f"A {part} cannot be decoded: {error}") from None

    return read


def registry_serializer(properties: Mapping[str, str], topic: str, part: str) -> Encode | None:
    """A serializer of JSON: for the "value" by the property value.schema.id, or by the latest
    schema of the topic; for the "key" by key.schema.id, and None without it.

    Raises:
        ConfigError: the URL or the id is wrong, or there is no such schema.
    """
    from kafkapy.schemas.packages import require_packages

    require_packages(_URL)
    from kafkapy.schemas.value_json import encoder
    from kafkapy.schemas.wire_format import CorruptValue

    for name in (f"{part}.schema", f"{part}.schema.file"):
        if name in properties:
            raise ConfigError(f"{name} would register a schema: register it, and give {name}.id")
    schema_id = properties.get(f"{part}.schema.id")
    if schema_id is None and part == "key":
        return None
    if schema_id is not None and not is_natural(schema_id):
        raise ConfigError(f"{part}.schema.id {schema_id} is not a number")
    client = _client(properties)
    try:
        encode = encoder(
            client.latest(f"{topic}-{part}") if schema_id is None else client.of_id(int(schema_id))
        )
    except (CorruptValue, KafkapyError) as error:
        raise ConfigError(str(error)) from None

    def write(text: bytes) -> bytes:
        try:
            return encode(text)
        except CorruptValue as error:
            raise ConfigError(f"The {part} is not of its schema: {error}") from None

    return write


def _client(properties: Mapping[str, str]) -> Any:
    """The client of the registry, without its class, which most tools do not load."""
    from kafkapy.schemas.registry_client import registry_client

    urls, user_info = _given(properties, _URL), _given(properties, _USER_INFO)
    return registry_client(urls or "", user_info)


def _given(properties: Mapping[str, str], name: str) -> str | None:
    return next((properties[p + name] for p in _PREFIXES if p + name in properties), None)
