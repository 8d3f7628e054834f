"""Values with schemas in the console consumers: their JSON, from the property schema.registry.url.

Confluent's consumers have formatters and deserializers for each type of schemas. Here all of their
names mean the same, because the schema's id tells its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.tools.console.message_formatter import Deserializer

_URL: Final = "schema.registry.url"
_USER_INFO: Final = "basic.auth.user.info"
# Kafka's own consumer hands these, without the prefix, to the class of a deserializer.
_PREFIXES: Final = ("", "value.deserializer.", "key.deserializer.")


def registry_deserializer(properties: Mapping[str, str]) -> Deserializer:
    """A deserializer to JSON. Bytes without the header of a schema stay as they are.

    Raises:
        ConfigError: the URL is missing or wrong, or a package is missing.
    """
    from kafkapy.schemas.packages import require_packages

    require_packages(_URL)
    from kafkapy.schemas.registry_client import registry_client
    from kafkapy.schemas.value_json import ValueJson
    from kafkapy.schemas.wire_format import CorruptValue, split_header

    urls, user_info = _given(properties, _URL), _given(properties, _USER_INFO)
    values = ValueJson(registry_client(urls or "", user_info))

    def read(raw: bytes) -> bytes:
        found = split_header(raw)
        if found is None:
            return raw
        try:
            return values.decode(*found)
        except (CorruptValue, KafkapyError) as error:
            raise ConfigError(f"A value cannot be decoded: {error}") from None

    return read


def _given(properties: Mapping[str, str], name: str) -> str | None:
    return next((properties[p + name] for p in _PREFIXES if p + name in properties), None)
