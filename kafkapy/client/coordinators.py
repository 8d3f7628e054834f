"""Finds the coordinator of a group or a transaction (FindCoordinator; from v4 on KIP-699)."""

from __future__ import annotations

from typing import Any, Final, Protocol

from kafkapy.client.metadata import Broker
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.protocol.schema import Message

GROUP_KEY_TYPE: Final = 0
TRANSACTION_KEY_TYPE: Final = 1


class RequestSender(Protocol):
    """The part of a cluster that this module needs."""

    def request(self, message: Message, *, min_version: int | None = None) -> Any:
        """Send a request to any broker."""

    def add_broker(self, broker: Broker) -> None:
        """Store the address of a broker."""


def find_coordinator(cluster: RequestSender, key: str, key_type: int = GROUP_KEY_TYPE) -> int:
    """The id of the coordinator of a group or, with that key type, a transactional id. The cluster
    stores the broker's address.

    Raises:
        ApiError: COORDINATOR_NOT_AVAILABLE while the internal topic is being created, and others.
    """
    response = cluster.request(
        FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key]),
        min_version=1 if key_type else None,  # before that, every key is a group
    )
    found = response.coordinators[0] if response.coordinators else response
    if found.error_code != ErrorCode.NONE:
        raise ApiError(ErrorCode(found.error_code), found.error_message or None)
    cluster.add_broker(Broker(found.node_id, found.host, found.port))
    return int(found.node_id)
