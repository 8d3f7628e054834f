"""Client quotas, and the one in force for each client (KIP-13, KIP-55;
`kafka.server.ClientQuotaManager`).

A quota is set for a user, for a client id, for both together, or for the default of either. The
most specific one applies. Clients that share a quota (all clients of a user, all users of a client
id) are counted together, and `Tags` identifies them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError


class QuotaKind(Enum):
    """Kinds of quotas, by the config that limits them."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    CONTROLLER_MUTATION = "controller_mutation_rate"


CONNECTION_RATE: Final = "connection_creation_rate"
INTEGER_KINDS: Final = (QuotaKind.PRODUCE, QuotaKind.FETCH)


class Default(Enum):
    """The name of the default entity, different from the names of all users and clients."""

    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT
Name = str | Default | None  # None: the entity has no such part


class Tags(NamedTuple):
    """Clients counted together: a user, a client id, or a pair; "" for a part that is not
    distinguished."""

    user: str
    client_id: str


class Limit(NamedTuple):
    """A quota a second (bytes, percent of a thread, mutations), and the clients that share it."""

    tags: Tags
    per_second: float


def limits_of(configs: Mapping[str, str]) -> dict[QuotaKind, float]:
    """The quotas among an entity's configs.

    Raises:
        ConfigError: a quota is not a number, or not an integer where bytes are counted.
    """
    found = {}
    for kind in QuotaKind:
        text = configs.get(kind.value)
        if text is None:
            continue
        try:
            found[kind] = _long(text) if kind in INTEGER_KINDS else float(text)
        except ValueError:
            raise ConfigError(f"{kind.value}={text} is not a valid quota") from None
    return found


def _long(text: str) -> float:
    """An integer of 64 bits, as in Kafka. Windows of a larger one would be infinite."""
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return float(number)


class QuotaTable:
    """The quotas of one kind, by entity."""

    def __init__(self) -> None:
        self._limits: dict[tuple[Name, Name], float] = {}

    def __len__(self) -> int:
        return len(self._limits)

    def set(self, user: Name, client_id: Name, per_second: float | None) -> None:
        """Set an entity's quota, or remove it."""
        if per_second is None:
            self._limits.pop((user, client_id), None)
        else:
            self._limits[user, client_id] = per_second

    def find(self, user: str, client_id: str) -> Limit | None:
        """The quota of a client, if any. Quotas of client ids do not apply without a client id."""
        levels: tuple[tuple[Name, Name], ...] = (
            (user, client_id),
            (user, DEFAULT),
            (user, None),
            (DEFAULT, client_id),
            (DEFAULT, DEFAULT),
            (DEFAULT, None),
            (None, client_id),
            (None, DEFAULT),
        )
        for level in levels:
            if level[1] is not None and not client_id:
                continue
            per_second = self._limits.get(level)
            if per_second is not None:
                shared_user = "" if level[0] is None else user
                return Limit(Tags(shared_user, "" if level[1] is None else client_id), per_second)
        return None
