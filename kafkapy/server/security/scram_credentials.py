"""This broker's cache of SCRAM credentials: those of `/config/users`, kept current by change
notifications. Nothing is read from ZooKeeper during a login (`CredentialCache`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from kafkapy.common.errors import ConfigError
from kafkapy.security.sasl.scram import MECHANISMS, ScramCredential
from kafkapy.security.sasl.server import CredentialOf, TokenCredential, TokenOf
from kafkapy.server.security.delegation_tokens import DelegationTokens
from kafkapy.zk.stores.paths import DEFAULT_ENTITY, desanitize

logger = logging.getLogger("kafka.security.CredentialProvider")


class ScramCredentials:
    """Credentials by mechanism and user; those of delegation tokens are in `tokens`."""

    def __init__(self, tokens: DelegationTokens | None = None) -> None:
        self._tokens = tokens
        self._known: dict[str, dict[str, ScramCredential]] = {name: {} for name in MECHANISMS}

    def update(self, entity: str, configs: Mapping[str, str]) -> None:
        """Apply the configs of `/config/users/<entity>`, some of which may be quotas.

        Raises:
            ConfigError: a credential cannot be parsed; logins with it fail.
        """
        if "/" in entity or entity == DEFAULT_ENTITY:
            return
        user = desanitize(entity)
        errors = []
        previous = [
            name for name, known in self._known.items() if known.pop(user, None) is not None
        ]
        for mechanism, known in self._known.items():
            if mechanism in configs:
                try:
                    known[user] = ScramCredential.parse(configs[mechanism])
                except ConfigError as error:
                    errors.append(f"{mechanism}: {error}")
        if errors:
            raise ConfigError("; ".join(errors))
        current = [name for name, known in self._known.items() if user in known]
        if previous or current:  # not a user of quotas only
            logger.info("User %s has credentials of: %s", user, ", ".join(current) or "none")

    def lookup_for(self, mechanism: str) -> CredentialOf:
        """The look-up of one mechanism's users."""
        return partial(self._find, mechanism)

    def token_lookup_for(self, mechanism: str) -> TokenOf:
        """The look-up of delegation tokens for logins with a mechanism."""
        return _no_token if self._tokens is None else self._tokens.lookup_for(mechanism)

    def _find(self, mechanism: str, user: str) -> ScramCredential | None:
        return self._known[mechanism].get(user)


def _no_token(token_id: str) -> TokenCredential | None:
    return None
