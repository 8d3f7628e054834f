"""Clients of other brokers, by broker id."""

from __future__ import annotations

from kafkapy.metadata.cache import MetadataCache
from kafkapy.server.interbroker.node_client import NodeClient, NodeUnavailable
from kafkapy.server.security.node_security import PLAINTEXT, NodeSecurity


class NodeClients:
    """One client per broker, created at its first use. Fixed: the listener and its security, the
    client id and the timeout."""

    def __init__(
        self,
        metadata: MetadataCache,
        listener: str,
        client_id: str,
        *,
        request_timeout_ms: int,
        security: NodeSecurity = PLAINTEXT,
    ) -> None:
        self._security = security
        self._metadata = metadata
        self._listener = listener
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._clients: dict[int, NodeClient] = {}
        self._closed = False

    def client_for(self, broker_id: int) -> NodeClient:
        """The client of a broker, at its current address in the metadata.

        Raises:
            NodeUnavailable: the broker is not known or does not have the listener, or these
                clients were closed.
        """
        if self._closed:
            raise NodeUnavailable(f"broker {broker_id} is not asked: these clients were closed")
        address = self._address(broker_id)
        if address is None:
            raise NodeUnavailable(f"broker {broker_id} is not known")
        existing = self._clients.get(broker_id)
        if existing is not None and (existing.host, existing.port) == address:
            return existing
        client = self._clients[broker_id] = NodeClient(
            *address,
            self._client_id,
            request_timeout_ms=self._request_timeout_ms,
            security=self._security,
        )
        if existing is not None:
            existing.close()  # its pending requests fail, and their callbacks may call this method
        return client

    def keep_only(self, broker_id: int) -> None:
        """Drop all connections except that to this broker at its current address."""
        for other, client in list(self._clients.items()):
            if other != broker_id or (client.host, client.port) != self._address(other):
                del self._clients[other]
                client.close()

    def _address(self, broker_id: int) -> tuple[str, int] | None:
        endpoint = self._metadata.image.endpoint(broker_id, self._listener)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def close(self) -> None:
        """Drop all connections for good."""
        self._closed = True
        for client in self._clients.values():
            client.close()
        self._clients.clear()
