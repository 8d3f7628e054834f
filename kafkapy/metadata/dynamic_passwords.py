"""Passwords among a broker's dynamic configs: plain in the broker, encoded in ZooKeeper
(KIP-226, `DynamicBrokerConfig`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkapy.common.errors import ConfigError
from kafkapy.security.password_encoder import (
    OLD_SECRET,
    SECRET,
    RandomBytes,
    encode_configs,
    is_password,
    password_encoder,
)

logger = logging.getLogger("kafka.server.DynamicBrokerConfig")


class DynamicPasswords:
    """Encodes and decodes passwords with the secrets of a broker, which do not change."""

    def __init__(self, properties: Mapping[str, str], random_bytes: RandomBytes) -> None:
        """Read the secrets from the properties of the broker.

        Raises:
            ConfigError: names the property of `password.encoder.*` and what is wrong with it.
        """
        self._encoder = password_encoder(properties)
        self._old_encoder = password_encoder(properties, OLD_SECRET)
        self._random_bytes = random_bytes

    @property
    def has_secret(self) -> bool:
        """Whether passwords can be stored."""
        return self._encoder is not None

    def encoded(self, configs: Mapping[str, str]) -> dict[str, str]:
        """Configs as they are stored.

        Raises:
            ConfigError: the configs have passwords, but the secret or `cryptography` is missing.
        """
        if self._encoder is not None:
            return encode_configs(configs, self._encoder, self._random_bytes)
        for name in filter(is_password, configs):
            raise ConfigError(f"Password encoder secret not configured: cannot store {name}")
        return dict(configs)

    def plain(self, stored: Mapping[str, str]) -> dict[str, str]:
        """Configs with decoded passwords. A password that cannot be decoded is left out and logged.
        Then the value in the properties applies."""
        configs = {}
        for name, value in stored.items():
            if not is_password(name):
                configs[name] = value
                continue
            try:
                configs[name] = self._decoded(name, value)
            except ConfigError as error:
                logger.error(
                    "Dynamic password config %s could not be decoded, ignoring: %s", name, error
                )
        return configs

    def _decoded(self, name: str, value: str) -> str:
        if self._encoder is None:
            raise ConfigError(f"{SECRET} is not set")
        return self._encoder.decode(value)

    def reencoded(self, stored: Mapping[str, str]) -> dict[str, str] | None:
        """Configs with passwords of the old secret encoded with the present one; None if no
        password is of the old secret.

        Raises:
            ConfigError: a password is of the old secret, and no present secret is configured.
        """
        if self._old_encoder is None:
            return None
        found = {}
        for name in filter(is_password, stored):
            try:
                found[name] = self._old_encoder.decode(stored[name])
            except ConfigError as error:  # the old secret may no longer be in use
                logger.debug("%s is not of the old secret: %s", name, error)
        return {**stored, **self.encoded(found)} if found else None
