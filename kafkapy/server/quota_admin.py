"""The quotas that are stored for users, clients and addresses, by filter
(`ZkAdminManager.describeClientQuotas`). They are described, for `configs --describe` asks for them
with a user's credentials; this version enforces none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.zk.paths import DEFAULT_ENTITY, desanitize
from kafkapy.zk.store import ZkStore

USER, CLIENT_ID, IP = "user", "client-id", "ip"
EXACT, DEFAULT, ANY = 0, 1, 2
_RATES: Final = (
    *("producer_byte_rate", "consumer_byte_rate"),
    *("request_percentage", "controller_mutation_rate"),
)
_KEYS: Final = {USER: _RATES, CLIENT_ID: _RATES, IP: ("connection_creation_rate",)}
_STORED: Final = {"users": (USER, CLIENT_ID), "clients": (CLIENT_ID,), "ips": (IP,)}

# Names by entity type; None is the default entity.
Entity = Mapping[str, str | None]


class Component(NamedTuple):
    """What a filter says of one entity type, as the request has it."""

    entity_type: str
    match_type: int
    name: str | None


class QuotaAdmin:
    """Quotas of all entities, over the store."""

    def __init__(self, store: ZkStore) -> None:
        self._configs = store.configs

    async def describe(
        self, components: Sequence[Component], strict: bool
    ) -> list[tuple[Entity, dict[str, float]]]:
        """The entities that the filter lets through, and their quotas; `strict` ones have no entity
        type that the filter does not name.

        Raises:
            ApiError: INVALID_REQUEST or UNSUPPORTED_VERSION, the filter makes no sense.
        """
        wanted = _checked(components)
        found: list[tuple[Entity, dict[str, float]]] = []
        for stored, types in _STORED.items():
            for node, configs in (await self._configs.get_all(stored)).items():
                names = zip(types, node.split("/clients/"), strict=False)
                entity = {kind: _name(part) for kind, part in names}
                quotas = {
                    key: float(value)
                    for key, value in configs.items()
                    if key in _KEYS[types[0]] and _is_number(value)
                }
                if quotas and _passes(entity, wanted, strict):
                    found.append((entity, quotas))
        return found


def _checked(components: Sequence[Component]) -> dict[str, Component]:
    wanted: dict[str, Component] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("Unexpected empty filter component entity type")
        if kind not in _KEYS:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported"
            )
        if kind in wanted:
            raise _invalid(f"Duplicate {kind} filter component entity type")
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise _invalid(f"Unexpected match type: {component.match_type}")
        if component.match_type == EXACT and component.name is None:
            raise _invalid("Request specifies MATCH_TYPE_EXACT, but the name is null")
        wanted[kind] = component
    if IP in wanted and len(wanted) > 1:
        raise _invalid(
            "Invalid entity filter component combination, IP filter component should not be used"
            " with user or clientId filter component."
        )
    return wanted


def _passes(entity: Entity, wanted: Mapping[str, Component], strict: bool) -> bool:
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


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _name(part: str) -> str | None:
    return None if part == DEFAULT_ENTITY else desanitize(part)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
