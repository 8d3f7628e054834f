"""A broker's way to whoever is the controller: a connection (`NodeToControllerChannelManager`), or
the event queue next door.

The controller is known from UpdateMetadata only, so right after a failover this may lead to the
one before; its NOT_CONTROLLER is for the caller to see, and to ask again.
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


async def ask_own_controller(
    submit: Callable[[Event], None], event_with: Callable[[Callable[[R], None]], Event]
) -> R:
    """Queue the event made of a reply function, and wait for the reply or the refusal."""
    answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def reply(result: R) -> None:
        if not answer.done():
            answer.set_result(result)

    submit(event_with(reply))
    return await answer


class NodeToController:
    """Gives the connection to the controller. Fixed: where it makes connections, which is its
    alone."""

    def __init__(self, metadata: MetadataCache, nodes: NodeClients) -> None:
        self._metadata = metadata
        self._nodes = nodes

    def client(self) -> NodeClient:
        """The connection to the controller of the current metadata; one to another is closed.

        Raises:
            NodeUnavailable: nobody is known to be the controller, or where it is.
        """
        self.follow()
        controller_id = self._metadata.image.controller_id
        if controller_id < 0:
            raise NodeUnavailable("nobody is known to be the controller")
        return self._nodes.of(controller_id)

    def follow(self) -> None:
        """The metadata changed: end a connection to who is not the controller any more, so that
        nobody waits for an answer of it."""
        self._nodes.keep_only(self._metadata.image.controller_id)

    def close(self) -> None:
        """Drop the connection, if there is one."""
        self._nodes.close()
