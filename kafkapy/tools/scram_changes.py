"""`SCRAM-SHA-256=[iterations=8192,password=secret]`: the grammar of `configs --alter`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

from kafkapy.admin.scram import SALT_BYTES, NewCredential
from kafkapy.common.errors import ConfigError
from kafkapy.common.java_numbers import INT_MAX
from kafkapy.security.sasl.scram import ITERATIONS_MIN, MECHANISMS, ScramCredential, ScramMechanism
from kafkapy.tools.config_changes import ConfigChange

_CREDENTIAL: Final = re.compile(r"(?:iterations=(-?[0-9]{1,10}),)?password=(.*)")
_DEFAULT_ITERATIONS: Final = -1


def split_change(change: ConfigChange) -> tuple[ConfigChange, ConfigChange]:
    """Split a change into its credentials and the rest."""
    parts = []
    for is_scram in (True, False):
        sets = {key: value for key, value in change.sets.items() if (key in MECHANISMS) is is_scram}
        deletes = [key for key in change.deletes if (key in MECHANISMS) is is_scram]
        parts.append(ConfigChange(sets, deletes))
    return parts[0], parts[1]


def parse_credentials(sets: Mapping[str, str]) -> dict[ScramMechanism, NewCredential]:
    """Credentials by mechanism.

    Raises:
        ConfigError: a credential is invalid. The text is that of `ConfigCommand`, without the
          password.
    """
    return {MECHANISMS[name]: _credential(name, text) for name, text in sets.items()}


def with_salted_credentials(change: ConfigChange) -> ConfigChange:
    """The change as stored in znodes: passwords are replaced by salted SCRAM credentials.

    Raises:
        ConfigError: as `parse_credentials`.
    """
    scram, others = split_change(change)
    sets = dict(others.sets)
    for mechanism, new in parse_credentials(scram.sets).items():
        salt = os.urandom(SALT_BYTES)
        salted = new.salted_password(mechanism, salt)
        credential = ScramCredential.of(mechanism, salt, salted, new.iterations)
        sets[mechanism.config] = credential.text()
    return ConfigChange(sets, change.deletes)


def _credential(name: str, text: str) -> NewCredential:
    match = _CREDENTIAL.fullmatch(text)
    if match is None or not match[2] or int(match[1] or 0) > INT_MAX:
        shown = re.sub("password=.*", "password=...", text)
        raise ConfigError(f"Invalid credential property {name}={shown}")
    iterations = int(match[1] or _DEFAULT_ITERATIONS)
    if iterations == _DEFAULT_ITERATIONS:
        iterations = ITERATIONS_MIN
    if iterations < ITERATIONS_MIN:
        raise ConfigError(
            f"Iterations {iterations} is less than the minimum {ITERATIONS_MIN} required for {name}"
        )
    return NewCredential(match[2], iterations)


def mechanisms_of(names: Sequence[str]) -> list[ScramMechanism]:
    """The mechanisms of keys to delete."""
    return [MECHANISMS[name] for name in names]
