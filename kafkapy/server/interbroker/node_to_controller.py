"""Requests of a broker to the controller: over a connection (`NodeToControllerChannelManager`), or
to the event queue of this broker's own controller.

Only UpdateMetadata names the controller, so right after a failover requests may go to the previous
one. The caller must handle its NOT_CONTROLLER, and retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from kafkapy.controller.events import Event
from kafkapy.metadata.cache import MetadataCache
from kafkapy.server.interbroker.node_client import NodeClient, NodeUnavailable
from kafkapy.server.interbroker.node_clients import NodeClients

R = TypeVar("R")


async def request_own_controller(
    submit: Callable[[Event], None], event_with: Callable[[Callable[[R], None]], Event]
) -> R:
    """Queue the event that `event_with` makes of a reply function, and wait for the reply or the
    refusal."""
    answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def reply(result: R) -> None:
        if not answer.done():
            answer.set_result(result)

    submit(event_with(reply))
    return await answer


class NodeToController:
    """Provides the connection to the controller. Fixed: `nodes`, which no other object uses."""

    def __init__(self, metadata: MetadataCache, nodes: NodeClients) -> None:
        self._metadata = metadata
        self._nodes = nodes

    def client(self) -> NodeClient:
        """The client of the controller in the current metadata. Connections to other brokers are
        closed.

        Raises:
            NodeUnavailable: the controller or its address is unknown.
        """
        self.close_others()
        controller_id = self._metadata.image.controller_id
        if controller_id < 0:
            raise NodeUnavailable("nobody is known to be the controller")
        return self._nodes.client_for(controller_id)

    def close_others(self) -> None:
        """Close the connection to a broker that is no longer the controller in the metadata. Its
        pending requests fail at once."""
        self._nodes.keep_only(self._metadata.image.controller_id)

    def close(self) -> None:
        """Drop the connection for good."""
        self._nodes.close()
