"""A cluster for dry runs: reads are sent, and requests that would change it are recorded.

Operations run the same code as on a real cluster, so the recorded requests are exact.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafkapy.client.cluster import Cluster
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import response_class
from kafkapy.protocol.schema import Message, Struct

MUTATING_APIS: Final = frozenset(
    {
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ELECT_LEADERS,
        ApiKey.DELETE_RECORDS,
    }
)


class PlannedRequest(NamedTuple):
    """A request that was not sent; `broker_id` None is any broker."""

    api: str
    version: int
    broker_id: int | None
    body: dict[str, Any]


class DryRunCluster(Cluster):
    """A cluster that records the requests that would change it in `requests`, in order.

    These requests are not sent. Their responses have no error and no rows.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.requests: list[PlannedRequest] = []

    def request(self, message: Message, *, broker_id: int | None = None, **options: Any) -> Any:
        """Send a request, or record one that would change something."""
        if message.API_KEY not in MUTATING_APIS:
            return super().request(message, broker_id=broker_id, **options)
        version = self.channel(broker_id).version_for(
            message, options.get("min_version"), options.get("max_version")
        )
        name = type(message).__name__.removesuffix("Request")
        self.requests.append(PlannedRequest(name, version, broker_id, _to_json(message)))
        return response_class(message.API_KEY)()


def _to_json(value: Any) -> Any:
    """A message in JSON's types."""
    if isinstance(value, Struct):
        return {field.name: _to_json(getattr(value, field.name)) for field in value.FIELDS}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    return value
