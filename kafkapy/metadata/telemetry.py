"""Subscriptions and pushes of clients that push metrics (KIP-714, `ClientMetricsManager`).

An instance is one client, by the id that a broker assigned to it. At most `INSTANCES_MAX` instances
are kept, the most recently used ones. An instance is removed after three intervals, and at least a
minute, without a request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from crc32c import crc32c

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Random
from kafkapy.common.uuid import Uuid
from kafkapy.metadata.client_metrics import (
    ClientInformation,
    RequestedMetrics,
    Subscription,
    parse_subscription,
    requested_metrics,
)
from kafkapy.metadata.otlp import LABEL_CHARS_MAX

INSTANCES_MAX: Final = 16_384
EXPIRY_MS_MIN: Final = 60_000
_EXPIRY_INTERVALS: Final = 3
_CHECK_INTERVAL_MS: Final = 10_000
_NEVER: Final = -(1 << 62)
_RESERVED_IDS: Final = frozenset({Uuid(bytes(16)), Uuid(bytes(15) + b"\1")})
# After these errors, a client requests its subscriptions at once.
_RESUBSCRIBE_ERRORS: Final = (
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)
COMPRESSION_TYPES: Final = range(5)


class Push(NamedTuple):
    """The fields of a PushTelemetry request that are checked."""

    subscription_id: int
    is_terminating: bool
    compression_type: int
    size_bytes: int


@dataclass(slots=True)
class Instance:
    """One client. Its times are reset when the subscriptions change."""

    client: ClientInformation
    version: int
    requested_metrics: RequestedMetrics
    subscription_id: int
    last_get_ms: int = _NEVER
    last_push_ms: int = _NEVER
    last_error: ErrorCode = ErrorCode.NONE
    is_terminating: bool = False
    expires_ms: int = 0


class ClientTelemetry:
    """The subscriptions, and the instances of one broker."""

    def __init__(self, max_bytes: int, random: Random) -> None:
        self.max_bytes = max_bytes
        self.instances: OrderedDict[Uuid, Instance] = OrderedDict()
        self.unknown_subscriptions = 0
        self.throttled = 0
        self._random = random
        self._subscriptions: dict[str, Subscription] = {}
        self._version = 0
        self._next_check_ms = _NEVER
        self._has_removed = False

    def subscribe(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace a subscription; without configs it ends.

        Raises:
            ConfigError: the configs are not allowed.
        """
        if configs:
            self._subscriptions[name] = parse_subscription(configs)
        elif self._subscriptions.pop(name, None) is None:
            return
        self._version += 1

    def get(
        self, now_ms: int, instance_id: Uuid, client: ClientInformation
    ) -> tuple[Uuid, Instance]:
        """The subscriptions of a client; a zero id is replaced by a new one. `client` needs no id.

        Raises:
            ApiError: THROTTLING_QUOTA_EXCEEDED.
        """
        if instance_id.is_zero:
            instance_id = Uuid.random(self._random)
        instance = self._instance(now_ms, instance_id, client)
        latest_ms = max(instance.last_get_ms, instance.last_push_ms)
        is_early = now_ms - latest_ms < instance.requested_metrics.interval_ms
        if is_early and instance.last_error not in _RESUBSCRIBE_ERRORS:
            self._throttle(instance_id)
        instance.last_get_ms = now_ms
        instance.last_error = ErrorCode.NONE
        return instance_id, instance

    def push(
        self, now_ms: int, instance_id: Uuid, client: ClientInformation, push: Push
    ) -> Instance:
        """Check a push.

        Raises:
            ApiError: INVALID_REQUEST (a reserved id, or a push after the last one),
                THROTTLING_QUOTA_EXCEEDED, UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE or
                TELEMETRY_TOO_LARGE.
        """
        if instance_id in _RESERVED_IDS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"invalid client instance id {instance_id}")
        instance = self._instance(now_ms, instance_id, client)
        try:
            self._check(now_ms, instance_id, instance, push)
        except ApiError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating = push.is_terminating
        instance.last_error = ErrorCode.NONE
        return instance

    def _check(self, now_ms: int, instance_id: Uuid, instance: Instance, push: Push) -> None:
        if instance.is_terminating:
            message = f"client [{instance_id}] sent a push after its terminating push"
            raise ApiError(ErrorCode.INVALID_REQUEST, message)
        # The first push after new subscriptions is early or late by chance (the client's jitter).
        interval_ms = instance.requested_metrics.interval_ms
        is_first = instance.last_get_ms > instance.last_push_ms
        if is_first or now_ms - instance.last_push_ms >= interval_ms:
            instance.last_push_ms = now_ms
        elif not push.is_terminating:
            self._throttle(instance_id)
        if push.subscription_id != instance.subscription_id:
            self.unknown_subscriptions += 1
            message = f"unknown subscription id for client [{instance_id}]"
            raise ApiError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, message)
        if push.compression_type not in COMPRESSION_TYPES:
            message = f"unknown compression type [{push.compression_type}]"
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)
        if push.size_bytes > self.max_bytes:
            message = f"a push of client [{instance_id}] has more than {self.max_bytes} bytes"
            raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE, message)

    def _throttle(self, instance_id: Uuid) -> None:
        self.throttled += 1
        message = f"client [{instance_id}] sent a request before its next push interval"
        raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message)

    def _instance(self, now_ms: int, instance_id: Uuid, client: ClientInformation) -> Instance:
        """The instance of a client, with the current subscriptions."""
        instance = self.instances.get(instance_id)
        if instance is None or instance.version != self._version:
            client = client._replace(client_instance_id=str(instance_id))
            requested = requested_metrics(client, self._subscriptions.values())
            subscription_id = _subscription_id(instance_id, requested)
            # Cut as for metrics: a name may be as long as a request, and outlives its connection.
            client = ClientInformation(*(text[:LABEL_CHARS_MAX] for text in client))
            instance = Instance(client, self._version, requested, subscription_id)
            self.instances[instance_id] = instance
            if len(self.instances) > INSTANCES_MAX:
                self.instances.popitem(last=False)
                self._has_removed = True
        self.instances.move_to_end(instance_id)
        expiry_ms = _EXPIRY_INTERVALS * instance.requested_metrics.interval_ms
        instance.expires_ms = now_ms + max(EXPIRY_MS_MIN, expiry_ms)
        return instance

    def expire(self, now_ms: int) -> bool:
        """Remove silent instances, at most every few seconds. Returns whether any was removed since
        the last call.
        """
        if now_ms >= self._next_check_ms:
            self._next_check_ms = now_ms + _CHECK_INTERVAL_MS
            expired = [key for key, each in self.instances.items() if each.expires_ms <= now_ms]
            for key in expired:
                del self.instances[key]
            self._has_removed |= bool(expired)
        has_removed, self._has_removed = self._has_removed, False
        return has_removed


def _subscription_id(instance_id: Uuid, requested: RequestedMetrics) -> int:
    """The id of a subscription. It differs for other metrics or another interval, and is the same
    on every broker."""
    text = f"[{', '.join(requested.metrics)}]{requested.interval_ms}"
    high, low = instance_id[:8], instance_id[8:]
    mixed = int.from_bytes(high, "big") ^ int.from_bytes(low, "big")
    checksum: int = crc32c(text.encode())
    folded = (checksum ^ (mixed >> 32) ^ mixed) & 0xFFFFFFFF
    return folded - (1 << 32) if folded >= 1 << 31 else folded
