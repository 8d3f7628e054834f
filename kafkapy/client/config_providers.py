"""Values of properties that are kept elsewhere: `${provider:[path:]key}` (KIP-297).

`config.providers` names the providers, and `config.providers.NAME.class` their classes, as in
Java's clients and brokers (`org.apache.kafka.common.config.ConfigTransformer`). Where Java leaves a
variable as it is, because its file or key does not exist or is not allowed, the properties are
refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from kafkapy.client.properties import load_properties
from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError

_PROVIDERS: Final = "config.providers"
_PACKAGE: Final = "org.apache.kafka.common.config.provider."
_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")

_Lookup = Callable[[str, str], str | None]
"""The value of a key at a path, both as in the variable; None if there is none."""


def resolved(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with the values of their variables, without those of the providers. Variables
    of other names are left as they are.

    Raises:
        ConfigError: a provider is not known, or a variable has no value.
    """
    lookups = {
        name: _lookup(name, properties) for name in comma_separated(properties.get(_PROVIDERS, ""))
    }
    if not lookups:
        return dict(properties)

    def value(name: str, variable: re.Match[str]) -> str:
        lookup = lookups.get(variable[1])
        if lookup is None:
            return variable[0]
        found = lookup(variable[2] or "", variable[3])
        if found is None:
            raise ConfigError(f"{variable[0]} in {name} has no value")
        return found

    return {
        name: _VARIABLE.sub(partial(value, name), text)
        for name, text in properties.items()
        if name != _PROVIDERS and not name.startswith(f"{_PROVIDERS}.")
    }


def _lookup(name: str, properties: Mapping[str, str]) -> _Lookup:
    key = f"{_PROVIDERS}.{name}.class"
    found = properties.get(key, "").strip()
    kind = _KINDS.get(found.removeprefix(_PACKAGE))
    if kind is None:
        raise ConfigError(f"{key}={found} is none of {', '.join(_KINDS)}")
    make, parameter = kind
    parameter_key = f"{_PROVIDERS}.{name}.param.{parameter}"
    return make(parameter_key, properties.get(parameter_key))


def _of_files(key: str, allowed: str | None) -> _Lookup:
    """Values of a property file."""

    def lookup(path: str, name: str) -> str | None:
        _check_path(path, key, allowed)
        return load_properties(path).get(name)

    return lookup


def _of_directories(key: str, allowed: str | None) -> _Lookup:
    """Contents of the files of a directory, such as a mounted secret."""

    def lookup(path: str, name: str) -> str | None:
        _check_path(path, key, allowed)
        if not name or "/" in name or name == "..":
            return None
        try:
            return Path(path, name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ConfigError(f"Cannot read {path}/{name}: {error}") from error

    return lookup


def _of_environment(key: str, allowed: str | None) -> _Lookup:
    """Variables of the environment."""
    try:
        names = None if allowed is None else re.compile(allowed)
    except re.error as error:
        raise ConfigError(f"{key}={allowed} is not a regular expression: {error}") from None

    def lookup(path: str, name: str) -> str | None:
        if path:
            raise ConfigError(f"The variable {path}:{name} of the environment has a path")
        if names is not None and not names.fullmatch(name):
            raise ConfigError(f"{key}={allowed} does not allow {name}")
        return os.environ.get(name)

    return lookup


_KINDS: Final[Mapping[str, tuple[Callable[[str, str | None], _Lookup], str]]] = {
    "FileConfigProvider": (_of_files, "allowed.paths"),
    "DirectoryConfigProvider": (_of_directories, "allowed.paths"),
    "EnvVarConfigProvider": (_of_environment, "allowlist.pattern"),
}


def _check_path(path: str, key: str, allowed: str | None) -> None:
    """
    Raises:
        ConfigError: the path is in none of the allowed ones (KIP-993).
    """
    if allowed is None:
        return
    absolute = Path(os.path.abspath(path))
    if not any(absolute.is_relative_to(os.path.abspath(each)) for each in comma_separated(allowed)):
        raise ConfigError(f"{key}={allowed} does not allow {path}")
