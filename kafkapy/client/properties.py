"""Client properties: files, `key=value` words, and the forms of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import INT_MAX
from kafkapy.common.java_properties import parse_properties


def load_properties(path: str) -> dict[str, str]:
    """Read a Java property file in UTF-8 or, if it is not valid UTF-8, in Latin-1.

    Raises:
        ConfigError: names the file and the fault.
    """
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}") from error
    try:
        # Editors may write a byte order mark. With `utf-8`, it would be in the first key.
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    try:
        return parse_properties(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse_assignments(words: Sequence[str]) -> dict[str, str]:
    """`key=value` words, each split at its first `=`; no `=` means an empty value.

    As `CommandLineUtils.parseKeyValueArgs` does for `--property` and `--override`.
    """
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def host_and_port(text: str) -> tuple[str, int] | None:
    """`host:port` or `[v6]:port` as a pair, None if the text is neither."""
    host, separator, port = text.rpartition(":")
    host = host.rpartition("://")[2].strip("[]")
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if not separator or not host or not is_number or int(port) > 65535:
        return None
    return host, int(port)


def parse_bootstrap_servers(text: str) -> list[tuple[str, int]]:
    """`host:port,[v6]:port` as pairs.

    Raises:
        ConfigError: names the part that is not host:port.
    """
    servers = []
    for part in comma_separated(text):
        server = host_and_port(part)
        if server is None:
            raise ConfigError(f"Invalid url in bootstrap.servers: {part}")
        servers.append(server)
    if not servers:
        raise ConfigError("No resolvable bootstrap urls given in bootstrap.servers")
    return servers


def int_property(properties: Mapping[str, str], name: str, default: int) -> int:
    """A whole number, or `default` without the property.

    Raises:
        ConfigError: the value is not a whole number.
    """
    text = properties.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: Not a number of type INT"
        ) from None


def milliseconds(properties: Mapping[str, str], name: str, default: int) -> int:
    """A time in ms, 0 or more, or `default` without the property.

    Raises:
        ConfigError: the value is not such a time.
    """
    value = int_property(properties, name, default)
    if value < 0:
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: Value must be at least 0"
        )
    if value > INT_MAX:
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: Not a number of type INT"
        )
    return value
