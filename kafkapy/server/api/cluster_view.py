"""The cluster's metadata for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.metadata.image import MetadataImage

Node = tuple[int, str, int, str | None]


class ClusterView:
    """The metadata of the cluster, and the brokers that have a listener. `broker_id` is this
    broker's.
    """

    def __init__(self, cluster_id: str, broker_id: int, metadata: MetadataCache) -> None:
        self.cluster_id = cluster_id
        self.broker_id = broker_id
        self._metadata = metadata
        self._nodes: dict[str, tuple[int, list[Node]]] = {}

    @property
    def image(self) -> MetadataImage:
        """The present metadata."""
        return self._metadata.image

    def nodes(self, listener: str) -> list[Node]:
        """(id, host, port, rack) of every live broker that has `listener`, by id."""
        image = self._metadata.image
        cached = self._nodes.get(listener)
        if cached is not None and cached[0] == image.version:
            return cached[1]
        nodes = []
        for broker_id, broker in sorted(image.brokers.items()):
            endpoint = broker.endpoint(listener)
            if endpoint is not None:
                nodes.append((broker_id, endpoint.host, endpoint.port, broker.rack))
        self._nodes[listener] = (image.version, nodes)
        return nodes
