"""A registry without Kafka: the records of each decision are applied at once."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from kafkapy.schemas.records import Record
from kafkapy.schemas.registry_state import RegistryState
from kafkapy.schemas.rest_api import ROUTES, Call, RestApi
from kafkapy.schemas.rest_errors import RestError


class RegistryDesk:
    """`desk("GET", "/subjects")` is the answer; the topic's records are in `records`."""

    def __init__(self) -> None:
        self.state = RegistryState()
        self.records: list[Record] = []
        self._api = RestApi(self.state, "cluster-1")

    def __call__(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        path, _, query = path.partition("?")
        words = parse_qs(query)
        for route_method, pattern, handler in ROUTES:
            names = _match(pattern, path)
            if route_method == method and names is not None:
                decision = handler(self._api, Call(names, words, body or {}))
                for record in decision.records:
                    self.state.apply(record)
                    self.records.append(record)
                return decision.answer
        raise LookupError(f"{method} {path}")

    def register(self, subject: str, schema: object, **more: Any) -> int:
        """The id of a schema, given as JSON."""
        body = {"schema": json.dumps(schema), **more}
        answer: int = self("POST", f"/subjects/{subject}/versions", body)["id"]
        return answer

    def refusal(self, method: str, path: str, body: dict[str, Any] | None = None) -> RestError:
        with pytest.raises(RestError) as raised:
            self(method, path, body)
        return raised.value


def _match(pattern: str, path: str) -> dict[str, str] | None:
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    pairs = list(zip(wanted, given, strict=True))
    if any(w != g and not w.startswith("{") for w, g in pairs):
        return None
    return {w[1:-1]: g for w, g in pairs if w.startswith("{")}


def record_schema(*fields: dict[str, Any], name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string"}
NOTE_BY_DEFAULT = {"name": "note", "type": "string", "default": ""}
