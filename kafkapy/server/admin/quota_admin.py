"""Describes and changes the stored quotas of users, clients and addresses.

The checks, their order and messages are those of `ZkAdminManager.describeClientQuotas` and
`alterClientQuotas`. Quotas that no client can meet are not refused: 0 is valid, and NaN bytes are
stored as 0.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

from kafkapy.common.config_def import format_value
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.metadata.client_quotas import CONNECTION_RATE, INTEGER_KINDS, QuotaKind
from kafkapy.security.sasl.scram import MECHANISMS
from kafkapy.server.requests.turns import Pace
from kafkapy.zk.stores.config_store import until_unchanged
from kafkapy.zk.stores.paths import DEFAULT_ENTITY, desanitize, sanitize
from kafkapy.zk.stores.store import ControllerMoved, ZkStore

logger = logging.getLogger("kafka.server.ZkAdminManager")

USER, CLIENT_ID, IP = "user", "client-id", "ip"
EXACT, DEFAULT, ANY = 0, 1, 2
_RATE_KEYS: Final = tuple(kind.value for kind in QuotaKind)
_KEYS: Final = {USER: _RATE_KEYS, CLIENT_ID: _RATE_KEYS, IP: (CONNECTION_RATE,)}
# (word, smallest, largest) of the quotas that are whole numbers.
_LONG: Final = ("LONG", -(2**63), 2**63 - 1)
_WHOLE_NUMBER_KEYS: Final = {kind.value: _LONG for kind in INTEGER_KINDS} | {
    CONNECTION_RATE: ("INT", -(2**31), 2**31 - 1)
}
_EPSILON: Final = 1e-6
_TYPES_BY_ROOT_TYPE: Final = {"users": (USER, CLIENT_ID), "clients": (CLIENT_ID,), "ips": (IP,)}

# Names by entity type; None is the default entity.
Entity = Mapping[str, str | None]
# The address of a host, if it has one.
Resolve = Callable[[str], Awaitable[str | None]]


class Component(NamedTuple):
    """A filter of one entity type, as the request has it."""

    entity_type: str
    match_type: int
    name: str | None


class QuotaOp(NamedTuple):
    """A quota to set, or to remove if `value` is None."""

    key: str
    value: float | None


class QuotaAdmin:
    """Describes and changes the quotas of all entities in the store."""

    def __init__(
        self,
        store: ZkStore,
        change_lock: asyncio.Lock,
        resolve: Resolve,
        has_only_kafkapy: bool = False,
    ) -> None:
        """`change_lock` is `ConfigAdmin`'s lock, because a user's credentials are in the same
        znode.

        `has_only_kafkapy`: no broker of Apache Kafka can read the znodes.
        """
        self._configs = store.configs
        self._change_lock = change_lock
        self._resolve = resolve
        self._has_only_kafkapy = has_only_kafkapy

    async def describe(
        self, components: Sequence[Component], strict: bool, pace: Pace
    ) -> list[tuple[Entity, dict[str, float]]]:
        """The entities that match the filter, and their quotas. If `strict`, entities with an
        entity type that the filter does not name do not match.

        Raises:
            ApiError: INVALID_REQUEST or UNSUPPORTED_VERSION, the filter is invalid.
        """
        wanted = _check_components(components)
        found: list[tuple[Entity, dict[str, float]]] = []
        for root_type, types in _TYPES_BY_ROOT_TYPE.items():
            for node, configs in (await self._configs.get_all(root_type, pace.charge)).items():
                names = zip(types, node.split("/clients/"), strict=False)
                entity = {kind: _name(part) for kind, part in names}
                quotas = {
                    key: float(value)
                    for key, value in configs.items()
                    if key in _KEYS[types[0]] and _is_number(value)
                }
                if quotas and _matches(entity, wanted, strict):
                    found.append((entity, quotas))
        return found

    async def alter(self, entity: Entity, ops: Sequence[QuotaOp], validate_only: bool) -> None:
        """Change the quotas of one entity, and notify every broker.

        Raises:
            ApiError: INVALID_REQUEST, UNKNOWN_SERVER_ERROR (a credential's key) or
                STALE_CONTROLLER_EPOCH (there is no controller); nothing has changed.
        """
        entity_type, name, keys = await self._location(entity)
        async with self._change_lock:
            await until_unchanged(lambda: self._alter(entity_type, name, keys, ops, validate_only))

    async def _alter(
        self,
        entity_type: str,
        name: str,
        keys: Sequence[str],
        ops: Sequence[QuotaOp],
        validate_only: bool,
    ) -> None:
        configs, version = await self._configs.get_versioned(entity_type, name)
        for op in ops:
            if op.value is None:
                configs.pop(op.key, None)
            else:
                configs[op.key] = _text(op.key, op.value, keys, entity_type)
        if validate_only:
            return
        logger.info("Updating the quotas of %s '%s'", entity_type, name)
        try:
            await self._configs.set(entity_type, name, configs, version)
        except ControllerMoved as moved:
            raise ApiError(ErrorCode.STALE_CONTROLLER_EPOCH, str(moved)) from moved

    async def _location(self, entity: Entity) -> tuple[str, str, Sequence[str]]:
        """The entity type and name of the znode of an entity, and the quotas that it may have."""
        if not entity:
            raise _invalid_request("Invalid empty client quota entity")
        for kind, name in entity.items():
            if kind not in _KEYS:
                raise _invalid_request(f"Unhandled client quota entity type: {kind}")
            if name == "":
                raise _invalid_request(f"Empty {kind} not supported")
        parts = {k: DEFAULT_ENTITY if n is None else sanitize(n) for k, n in entity.items()}
        if IP not in parts:
            if USER not in parts:
                return "clients", parts[CLIENT_ID], _RATE_KEYS
            client = f"/clients/{parts[CLIENT_ID]}" if CLIENT_ID in parts else ""
            return "users", parts[USER] + client, _RATE_KEYS
        if len(parts) > 1:
            raise _invalid_request(
                "Invalid quota entity combination, IP entity should not be used with user/client ID"
                " entity."
            )
        ip = parts[IP]
        # Kafka's brokers resolve the stored name, which they cannot do for an IPv6 address.
        host = entity[IP] if self._has_only_kafkapy else ip
        if ip != DEFAULT_ENTITY and await self._resolve(host or "") is None:
            raise _invalid_request(f"{ip} is not a valid IP or resolvable host.")
        return "ips", ip, _KEYS[IP]


def _text(key: str, value: float, keys: Sequence[str], entity_type: str) -> str:
    """A quota as it is stored."""
    if key not in keys:
        if entity_type == "users" and key in MECHANISMS:  # a known key, but not a number
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        raise _invalid_request(f"Invalid configuration key {key}")
    if key not in _WHOLE_NUMBER_KEYS:
        return format_value(value) or ""
    word, smallest, largest = _WHOLE_NUMBER_KEYS[key]
    whole = 0 if math.isnan(value) else max(smallest, min(largest, _truncated(value + _EPSILON)))
    if abs(whole - value) > _EPSILON:
        raise _invalid_request(f"Configuration {key} must be a {word} value")
    return str(whole)


def _truncated(value: float) -> int:
    return int(value) if math.isfinite(value) else int(math.copysign(2**64, value))


def _check_components(components: Sequence[Component]) -> dict[str, Component]:
    wanted: dict[str, Component] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid_request("Unexpected empty filter component entity type")
        if kind not in _KEYS:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported"
            )
        if kind in wanted:
            word = "client" if kind == CLIENT_ID else kind
            raise _invalid_request(f"Duplicate {word} filter component entity type")
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise _invalid_request(f"Unexpected match type: {component.match_type}")
        if component.match_type == EXACT and component.name is None:
            raise _invalid_request("Request specifies MATCH_TYPE_EXACT, but the name is null")
        wanted[kind] = component
    if IP in wanted and len(wanted) > 1:
        raise _invalid_request(
            "Invalid entity filter component combination, IP filter component should not be used"
            " with user or clientId filter component."
        )
    return wanted


def _matches(entity: Entity, wanted: Mapping[str, Component], strict: bool) -> bool:
    if strict and entity.keys() != wanted.keys():
        return False
    return all(
        kind in entity
        and (
            component.match_type == ANY
            or entity[kind] == (component.name if component.match_type == EXACT else None)
        )
        for kind, component in wanted.items()
    )


def _invalid_request(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _name(part: str) -> str | None:
    return None if part == DEFAULT_ENTITY else desanitize(part)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
