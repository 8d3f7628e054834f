"""`configs --describe` and `--alter` as text, table and JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafkapy.admin import quotas
from kafkapy.admin.configs import ConfigEntry
from kafkapy.cli.framework.output import Report, Table, error_json
from kafkapy.common.config_def import ConfigSource
from kafkapy.common.errors import ApiError
from kafkapy.common.java_numbers import DOUBLE, real
from kafkapy.security.sasl.scram import MECHANISMS, ScramMechanism

_KEY: Final = r"[a-zA-Z0-9._-]+(?=\s*=)"
QUOTA_WORDS: Final = {
    quotas.USER: "user-principal",
    quotas.CLIENT_ID: "client-id",
    quotas.IP: "ip",
}


def resources_report(
    kind: str, found: Mapping[str, Sequence[ConfigEntry]], everything: bool
) -> Report:
    """Configs by entity name, sorted by key."""
    text: list[str] = []
    data: list[dict[str, Any]] = []
    tables = []
    for name, unsorted in found.items():
        entries = sorted(unsorted, key=lambda entry: entry.name)
        title = _title(kind, name, everything)
        text += [title, *(_entry_line(entry) for entry in entries)]
        rows = [(e.name, _word(e.value), _source(e.source)) for e in entries]
        tables.append(Table(("Config", "Value", "Source"), rows, title.removesuffix(" are:")))
        data.append(_resource_json(kind, name, entries))
    return Report("configs", data, text, tables)


def quotas_report(found: quotas.Quotas) -> Report:
    """Quotas by entity, written as Java writes doubles."""
    text = [
        f"Quota configs for {', '.join(map(_quota_name, entity))} are "
        + ", ".join(f"{key}={real(DOUBLE, value)}" for key, value in values.items())
        for entity, values in found.items()
    ]
    data = [
        {
            "entity": dict(entity),
            # JSON has no infinite numbers.
            "configs": {k: v if math.isfinite(v) else real(DOUBLE, v) for k, v in values.items()},
        }
        for entity, values in found.items()
    ]
    return Report("configs", data, text)


def scram_report(found: Mapping[str, Mapping[ScramMechanism, int]]) -> Report:
    """The mechanisms and iterations of users' credentials, one line for each user. Credentials
    themselves cannot be read.
    """
    shown = {
        user: {m.config: f"iterations={count}" for m, count in sorted(credentials.items())}
        for user, credentials in sorted(found.items())
    }
    text = [
        f"SCRAM credential configs for user-principal '{user}' are "
        + ", ".join(f"{name}={value}" for name, value in configs.items())
        for user, configs in shown.items()
    ]
    data = [{"entity": {quotas.USER: u}, "configs": configs} for u, configs in shown.items()]
    return Report("configs", data, text)


def scram_error_report(user: str | None, error: ApiError) -> Report:
    """The error of the broker when it does not return the credentials of a user (None: of all)."""
    scope = "" if user is None else f" for user-principal '{user}'"
    line = f"Error retrieving SCRAM credential configs{scope}: {error}"
    data = {"entity": {quotas.USER: user}, "configs": {}, **error_json(error)}
    return Report("configs", [data], [line])


def completed_report(
    kind: str, name: str, sets: Mapping[str, str], deletes: Sequence[str]
) -> Report:
    """A change that was made. Kafka's tool prints the type without its last letter."""
    line = f"Completed updating config for {kind[:-1]} {name}."
    if not name:
        line = f"Completed updating default config for {kind} in the cluster."
    entity = {"entity_type": kind, "entity_name": name}
    data = {**entity, "set": without_secrets(sets), "deleted": list(deletes)}
    return Report("configs", [data], [line])


def without_secrets(sets: Mapping[str, str]) -> dict[str, str | None]:
    """The values that may be shown; null for passwords, as in Kafka's descriptions."""
    return {name: None if _is_secret(name) else text for name, text in sets.items()}


def word_without_secrets(word: str) -> str:
    """A word of the command line, up to the value of the first password in it."""
    for found in re.finditer(_KEY, word):
        if _is_secret(found[0]):
            return f"{word[: found.end()]}=[hidden]"
    return word


def _is_secret(name: str) -> bool:
    from kafkapy.security.password_encoder import OLD_SECRET, SECRET, is_password

    return name in {SECRET, OLD_SECRET, *MECHANISMS} or is_password(name)


def _quota_name(entity: quotas.QuotaEntity) -> str:
    word = QUOTA_WORDS.get(entity.type, entity.type)
    return f"{word} '{entity.name}'" if entity.name else f"the default {word}"


def _title(kind: str, name: str, everything: bool) -> str:
    if not name:
        return f"Default configs for {kind} in the cluster are:"
    return f"{'All' if everything else 'Dynamic'} configs for {kind[:-1]} {name} are:"


def _entry_line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{_source(s.source)}:{s.name}={_word(s.value)}" for s in entry.synonyms)
    sensitive = "true" if entry.is_sensitive else "false"
    return f"  {entry.name}={_word(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _word(value: str | None) -> str:
    return "null" if value is None else value


def _source(source: int) -> str:
    known = source in ConfigSource._value2member_map_
    return ConfigSource(source).name if known else ConfigSource.UNKNOWN.name


def _resource_json(kind: str, name: str, entries: Sequence[ConfigEntry]) -> dict[str, Any]:
    configs = [
        {
            "name": entry.name,
            "value": entry.value,
            "source": _source(entry.source),
            "sensitive": entry.is_sensitive,
            "read_only": entry.is_read_only,
            "synonyms": [
                {"name": s.name, "value": s.value, "source": _source(s.source)}
                for s in entry.synonyms
            ],
        }
        for entry in entries
    ]
    return {"entity_type": kind, "entity_name": name, "configs": configs}
