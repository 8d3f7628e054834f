"""Client quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafkapy.admin.errors import check
from kafkapy.client.cluster import Cluster
from kafkapy.protocol.messages import alter_client_quotas as alter
from kafkapy.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

# The order of an entity's parts in Kafka's tool.
_ORDER: Final = {USER: 0, CLIENT_ID: 1, IP: 2}
_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2


class QuotaEntity(NamedTuple):
    """One part of an entity. In a filter, a name of None matches any; "" is the default entity."""

    type: str
    name: str | None


Quotas = dict[tuple[QuotaEntity, ...], dict[str, float]]


def describe_quotas(cluster: Cluster, entities: Sequence[QuotaEntity]) -> Quotas:
    """Quotas of entities with exactly these parts. In results, the user precedes the client.

    Raises:
        ApiError: the broker refused, or has no quotas (UNSUPPORTED_VERSION).
    """
    components = [
        ComponentData(
            entity_type=kind,
            match_type=_ANY if name is None else _EXACT if name else _DEFAULT,
            match=name or None,
        )
        for kind, name in entities
    ]
    response = cluster.request(DescribeClientQuotasRequest(components=components, strict=True))
    check(response.error_code, response.error_message)
    return {
        _entity(entry.entity): {value.key: value.value for value in entry.values}
        for entry in response.entries or ()
    }


def _entity(parts: Iterable[Any]) -> tuple[QuotaEntity, ...]:
    """The parts of an entity in a fixed order; brokers return them in hash order."""
    found = (QuotaEntity(part.entity_type, part.entity_name or "") for part in parts)
    return tuple(sorted(found, key=lambda part: _ORDER.get(part.type, len(_ORDER))))


def alter_quotas(
    cluster: Cluster,
    entities: Sequence[QuotaEntity],
    sets: Mapping[str, float],
    deletes: Sequence[str],
) -> None:
    """Set and remove quotas of one entity.

    Raises:
        ApiError: the controller refused.
    """
    entry = alter.EntryData(
        entity=[
            alter.EntityData(entity_type=kind, entity_name=name or None) for kind, name in entities
        ],
        ops=[
            *(alter.OpData(key=key, value=value) for key, value in sets.items()),
            *(alter.OpData(key=key, remove=True) for key in deletes),
        ],
    )
    response = cluster.controller_request(alter.AlterClientQuotasRequest(entries=[entry]))
    for result in response.entries:
        check(result.error_code, result.error_message)
