"""Applies the quotas of this broker's clients (`kafka.server.ClientQuotaManager`,
`ClientRequestQuotaManager`, `ControllerMutationQuotaManager`; KIP-13, 55, 124, 599, 612).

Pure, except for the given clock. Only clients with a quota are counted. Without quotas, a request
checks only `are_set`. `throttler` applies pauses to connections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.sampled_stat import SampledStat
from kafkapy.metadata.client_quotas import (
    CONNECTION_RATE,
    DEFAULT,
    Name,
    QuotaKind,
    QuotaTable,
    Tags,
    limits_of,
)
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.quotas.creation_rates import CreationRates
from kafkapy.server.quotas.quota_usage import Ledger, Usage, Windows, rounded
from kafkapy.zk.stores.paths import DEFAULT_ENTITY, desanitize


class Client(NamedTuple):
    """A client as quotas identify it: the name of the principal, and the client id or ""."""

    user: str
    client_id: str


def client_named(principal: str, client_id: str | None) -> Client:
    """The client with a principal (`User:alice`) and a request's client id."""
    return Client(principal.partition(":")[2], client_id or "")


class Quota:
    """The quotas of one kind, and the usage of the clients that have one."""

    def __init__(self, windows: Windows, pause_max_ms: int | None = None) -> None:
        """No pause is longer than `pause_max_ms`."""
        self.table = QuotaTable()
        self._ledger: Ledger[Tags] = Ledger(windows)
        self._pause_max_ms = pause_max_ms

    def usage(self, client: Client, now_ms: int) -> Usage | None:
        """The usage of all clients that share a client's quota, if it has one."""
        found = self.table.find(*client)
        return None if found is None else self._ledger.usage(*found, now_ms)

    def record(self, client: Client, value: float, now_ms: int) -> int:
        """Record that a client used `value`. Returns the ms for which it must pause."""
        usage = self.usage(client, now_ms)
        return 0 if usage is None else usage.record(value, now_ms, self._pause_max_ms)

    def is_unused(self, client: Client, now_ms: int) -> bool:
        """Whether the clients that share a client's quota used nothing in the windows."""
        usage = self.usage(client, now_ms)
        return usage is None or not usage.rate.rate(now_ms)

    def unrecord(self, client: Client, value: float, now_ms: int) -> None:
        """Take back a recorded use that did not happen."""
        usage = self.usage(client, now_ms)
        if usage is not None:
            usage.rate.record(-value, now_ms)

    def record_pause(self, client: Client, pause_ms: int, now_ms: int) -> None:
        """Record a pause of a client because of this quota."""
        usage = self.usage(client, now_ms)
        if usage is not None:
            usage.pauses.record(pause_ms, now_ms)

    def burst(self, client: Client) -> int | None:
        """The amount that can be used at once without a pause, if a quota limits it."""
        found = self.table.find(*client)
        if found is None or not found.per_second > 0:
            return None
        windows = self._ledger.windows
        return int(found.per_second * (windows.num - 1) * windows.size_ms / 1000)

    def items(self) -> Iterator[tuple[Tags, Usage]]:
        """Usage by entity."""
        return self._ledger.items()


class Mutations:
    """The quota for one request's changes to the cluster's topics (KIP-599), in partitions.

    A strict quota refuses changes after the credit is used up, and does not pause the client for
    accepted changes. A permissive quota refuses nothing, and pauses the client.
    """

    def __init__(self, usage: Usage | None, strict: bool, clock: Clock) -> None:
        self._usage = usage
        self._strict = strict
        self._clock = clock
        self._pause_ms = 0
        self._pause_set_ms = 0

    def charge(self, partitions: int) -> None:
        """Charge the creation or deletion of a number of partitions.

        Raises:
            ApiError: THROTTLING_QUOTA_EXCEEDED, the credit is used up.
        """
        usage, now_ms = self._usage, self._clock.monotonic_ms()
        if usage is None:
            return
        if self._strict and self._is_exhausted(usage, now_ms):
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        usage.rate.record(partitions, now_ms)
        usage.bucket.take(partitions, usage.limit, now_ms)
        if not self._strict:
            self._is_exhausted(usage, now_ms)

    def pause_ms(self) -> int:
        """The rest of the client's pause."""
        return max(0, self._pause_ms - (self._clock.monotonic_ms() - self._pause_set_ms))

    def _is_exhausted(self, usage: Usage, now_ms: int) -> bool:
        """Whether the credit is used up. If so, notes the pause until there is credit again."""
        tokens = usage.bucket.tokens(usage.limit, now_ms)
        if tokens < 0 < usage.limit:
            self._pause_ms, self._pause_set_ms = rounded(-tokens / usage.limit * 1000), now_ms
        return tokens < 0


class ClientQuotas:
    """All client quotas of one broker."""

    def __init__(self, config: KafkaConfig, clock: Clock) -> None:
        windows = Windows(config)
        self._clock = clock
        self.version = 0  # the number of changes
        self.are_set = False  # addresses excluded: only connections use theirs
        self.by_kind: Final = {
            QuotaKind.PRODUCE: Quota(windows),
            QuotaKind.FETCH: Quota(windows),
            QuotaKind.REQUEST: Quota(windows, pause_max_ms=windows.size_ms),
            QuotaKind.CONTROLLER_MUTATION: Quota(Windows(config, "controller.")),
        }
        self.connections = ConnectionRates(windows)
        self.creations = CreationRates(config)
        self.exempt = SampledStat(windows.size_ms, windows.num)
        """Percent of time for requests that are exempt from quotas."""

    def update(self, entity_type: str, entity: str, configs: Mapping[str, str]) -> None:
        """Apply the configs of `/config/users/<entity>` or `/config/clients/<entity>`.

        Raises:
            ConfigError: a quota is no number; nothing has changed.
        """
        limits = limits_of(configs)
        user, client_id = _names(entity_type, entity)
        for kind, quota in self.by_kind.items():
            quota.table.set(user, client_id, limits.get(kind))
        self.are_set = any(len(quota.table) for quota in self.by_kind.values())
        self.version += 1

    def mutations(self, client: Client, strict: bool) -> Mutations:
        """The quota for the changes of a client's request."""
        usage = None
        if self.are_set:
            quota = self.by_kind[QuotaKind.CONTROLLER_MUTATION]
            usage = quota.usage(client, self._clock.monotonic_ms())
        return Mutations(usage, strict, self._clock)


class ConnectionRates:
    """Connection rates of addresses, per second (KIP-612)."""

    def __init__(self, windows: Windows) -> None:
        self._default: int | None = None
        self._limits: dict[str, int] = {}
        self._ledger: Ledger[str] = Ledger(windows)

    def set(self, address: str | None, configs: Mapping[str, str]) -> None:
        """Apply the configs of an address, or of the default.

        Raises:
            ConfigError: its rate is no whole number; nothing has changed.
        """
        text = configs.get(CONNECTION_RATE)
        try:
            rate = None if text is None else int(text)
        except ValueError:
            raise ConfigError(f"{CONNECTION_RATE}={text} is no whole number") from None
        if address is None:
            self._default = rate
        elif rate is None:
            self._limits.pop(address, None)
        else:
            self._limits[address] = rate

    def record_connection(self, address: str, now_ms: int) -> int:
        """Record a connection of an address. Returns 0 if it is accepted, else the ms after which
        it must be closed."""
        limit = self._limits.get(address, self._default)
        if limit is None:
            return 0
        usage = self._ledger.usage(address, limit, now_ms)
        pause_ms = usage.record(1, now_ms, self._ledger.windows.size_ms)
        if pause_ms:
            usage.rate.record(-1, now_ms)
            usage.pauses.record(pause_ms, now_ms)
        return pause_ms

    def items(self) -> Iterator[tuple[str, Usage]]:
        """Connection rates of the addresses that have a limit."""
        return self._ledger.items()


def _names(entity_type: str, entity: str) -> tuple[Name, Name]:
    """(user, client id) of a path below `/config/<entity type>`."""
    if entity_type == "clients":
        return None, _name(entity)
    user, _, client_id = entity.partition("/clients/")
    return _name(user), _name(client_id) if client_id else None


def _name(part: str) -> Name:
    return DEFAULT if part == DEFAULT_ENTITY else desanitize(part)
