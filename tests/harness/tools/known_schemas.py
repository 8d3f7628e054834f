"""Registered schemas by id, in place of a registry's client."""

from __future__ import annotations

from kafkapy.schemas.registry_client import RegisteredSchema


class KnownSchemas:
    """The schemas by id. It counts the requests."""

    def __init__(self, *schemas: RegisteredSchema) -> None:
        self._schemas = {each.schema_id: each for each in schemas}
        self.requests = 0

    def of_id(self, schema_id: int) -> RegisteredSchema:
        self.requests += 1
        return self._schemas[schema_id]
