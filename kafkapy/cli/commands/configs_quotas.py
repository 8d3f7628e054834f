"""`kafkapy configs` for users, clients and addresses: their quotas, and users' credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.output import Report
from kafkapy.common.errors import ApiError, ConfigError

if TYPE_CHECKING:
    from kafkapy.admin.quotas import QuotaEntity
    from kafkapy.client.cluster import Cluster
    from kafkapy.tools.config_changes import ConfigChange

CLIENTS: Final = "clients"
USERS: Final = "users"
IPS: Final = "ips"
_RATES: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
QUOTA_KEYS: Final = {USERS: _RATES, CLIENTS: _RATES, IPS: ("connection_creation_rate",)}
_CONFIGS_OF: Final = {
    USERS: "quota and SCRAM credential configs",
    IPS: "connection_creation_rate quota configs",
}
# `Double.parseDouble`, without hexadecimal numbers.
_DOUBLE: Final = r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?)"

# A type and a name. "" is the default entity, None means all entities of the type.
EntityName = tuple[str, str | None]


def describe(cluster: Cluster, entities: Sequence[EntityName]) -> tuple[Report, ApiError | None]:
    """Quotas of users, clients, both together, or addresses. For users alone, credentials too, and
    the error if the broker does not return them.

    Raises:
        ApiError: the broker refused, or does not support quotas.
    """
    from kafkapy.admin.quotas import describe_quotas
    from kafkapy.admin.scram import describe_scram
    from kafkapy.cli.views.configs import quotas_report, scram_error_report, scram_report

    report = quotas_report(describe_quotas(cluster, quota_entities(entities)))
    (kind, name), *others = entities
    if kind != USERS or others or name == "":
        return report, None
    failure = None
    try:
        scram = scram_report(describe_scram(cluster, None if name is None else [name]))
    except ApiError as error:
        failure, scram = error, scram_error_report(name, error)
    text, data = [*report.text, *scram.text], [*report.data, *scram.data]
    return report._replace(text=text, data=data), failure


def alter(cluster: Cluster, entities: Sequence[EntityName], change: ConfigChange) -> None:
    """Change the quotas of one entity, or the credentials of one user.

    Raises:
        ConfigError: a key is unknown, a value is not a number, or quotas and credentials would be
            changed together.
        ApiError: the controller refused.
    """
    from kafkapy.admin.quotas import alter_quotas, describe_quotas
    from kafkapy.tools.scram_changes import split_change

    kind = entities[0][0]
    scram, others = split_change(change) if kind == USERS else (None, change)
    if scram is not None and (scram.sets or scram.deletes):
        _alter_scram(cluster, entities, scram, others)
        return
    sets = _quota_values(kind, change.sets)
    quota_targets = quota_entities(entities)
    present = describe_quotas(cluster, quota_targets)
    change.refuse_unknown_deletes({key for values in present.values() for key in values})
    alter_quotas(cluster, quota_targets, sets, change.deletes)


def _alter_scram(
    cluster: Cluster, entities: Sequence[EntityName], scram: ConfigChange, others: ConfigChange
) -> None:
    from kafkapy.admin.scram import alter_scram, describe_scram
    from kafkapy.tools.scram_changes import mechanisms_of, parse_credentials

    if others.sets or others.deletes:
        _check_quota_names(USERS, others.sets)
        raise ConfigError(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using"
            " --bootstrap-server."
        )
    user = entities[0][1]
    if not user or len(entities) > 1:
        raise ConfigError(
            "The use of --entity-default or --user-defaults is not allowed with"
            " User SCRAM Credentials using --bootstrap-server."
        )
    sets = parse_credentials(scram.sets)
    if scram.deletes:
        present = describe_scram(cluster, [user]).get(user, {})
        scram.refuse_unknown_deletes({mechanism.config for mechanism in present})
    alter_scram(cluster, user, sets, mechanisms_of(scram.deletes))


def _quota_values(kind: str, sets: Mapping[str, str]) -> dict[str, float]:
    _check_quota_names(kind, sets)
    values = {}
    for key, text in sets.items():
        if not re.fullmatch(_DOUBLE, text):
            raise ConfigError(f"Cannot parse quota configuration value for {key}: {text}")
        values[key] = float(text.rstrip("dDfF"))
    return values


def quota_entities(entities: Sequence[EntityName]) -> list[QuotaEntity]:
    """Entities with the type names of quotas."""
    from kafkapy.admin import quotas

    words = {USERS: quotas.USER, CLIENTS: quotas.CLIENT_ID, IPS: quotas.IP}
    return [quotas.QuotaEntity(words[kind], name) for kind, name in entities]


def _check_quota_names(kind: str, names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in QUOTA_KEYS[kind]]
    if unknown:
        raise ConfigError(
            f"Only {_CONFIGS_OF.get(kind, 'quota configs')} can be added for '{kind}' using"
            f" --bootstrap-server. Unexpected config names: {','.join(unknown)}"
        )
