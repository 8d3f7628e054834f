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
from kafkapy.server.node_client import NodeClient, NodeUnavailable
from kafkapy.server.node_security import PLAINTEXT, NodeSecurity

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
    """Gives the connection to the controller. Fixed: the listener, client id and time limit."""

    def __init__(
        self,
        metadata: MetadataCache,
        listener: str,
        client_id: str,
        *,
        request_timeout_ms: int,
        security: NodeSecurity = PLAINTEXT,
    ) -> None:
        self._metadata = metadata
        self._listener = listener
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._security = security
        self._client: NodeClient | None = None

    def client(self) -> NodeClient:
        """The connection to the controller of the current metadata; one to another is closed.

        Raises:
            NodeUnavailable: nobody is known to be the controller.
        """
        address = self._address()
        if address is None:
            raise NodeUnavailable("nobody is known to be the controller")
        self.follow()
        if self._client is None:
            self._client = NodeClient(
                *address,
                self._client_id,
                request_timeout_ms=self._request_timeout_ms,
                security=self._security,
            )
        return self._client

    def follow(self) -> None:
        """The metadata changed: end a connection to who is not the controller any more, so that
        nobody waits for an answer of it."""
        client = self._client
        if client is not None and (client.host, client.port) != self._address():
            self.close()

    def close(self) -> None:
        """Drop the connection, if there is one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _address(self) -> tuple[str, int] | None:
        image = self._metadata.image
        endpoint = image.endpoint(image.controller_id, self._listener)
        return None if endpoint is None else (endpoint.host, endpoint.port)
