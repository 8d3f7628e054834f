"""`ZkStore`: Kafka's data in ZooKeeper, typed, over the port of `zookeeper` (`KafkaZkClient`).

Each area is a small store of its own: `brokers topics configs election requests acls tokens
features`; the nodes of the cluster as a whole are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.errors import KafkapyError
from kafkapy.zk.stores import paths
from kafkapy.zk.stores.acl_store import AclStore
from kafkapy.zk.stores.broker_store import BrokerIdTaken, BrokerStore, Registration
from kafkapy.zk.stores.config_store import ConfigStore
from kafkapy.zk.stores.election_store import ElectionStore
from kafkapy.zk.stores.feature_store import FeatureStore
from kafkapy.zk.stores.fencing import (
    ControllerMoved,
    Fence,
    create_recursive,
    ensure_path,
    fenced_multi,
)
from kafkapy.zk.stores.request_store import RequestStore
from kafkapy.zk.stores.token_store import TokenStore
from kafkapy.zk.stores.topic_store import StateWrites, TopicStore
from kafkapy.zk.stores.znodes import (
    PRODUCER_ID_BLOCK_SIZE,
    ProducerIdBlock,
    decode_cluster_id,
    decode_producer_id_block,
    encode_cluster_id,
    encode_feature,
    encode_producer_id_block,
)
from kafkapy.zk.zookeeper import BadVersion, Create, NodeExists, NoNode, ZooKeeper

__all__ = [
    "BrokerIdTaken",
    "ControllerMoved",
    "Fence",
    "Registration",
    "StateWrites",
    "ZkStore",
]

_LAST_PRODUCER_ID: Final = 2**63 - 1


class ZkStore:
    """Typed access to Kafka's data in ZooKeeper."""

    def __init__(self, zk: ZooKeeper) -> None:
        self.zookeeper = zk
        self.brokers = BrokerStore(zk)
        self.topics = TopicStore(zk)
        self.configs = ConfigStore(zk)
        self.election = ElectionStore(zk)
        self.requests = RequestStore(zk)
        self.acls = AclStore(zk)
        self.tokens = TokenStore(zk)
        self.features = FeatureStore(zk)

    async def create_persistent_paths(self) -> None:
        """Create the nodes that every broker needs."""
        for path in paths.PERSISTENT_PATHS:
            await ensure_path(self.zookeeper, path)

    async def cluster_id(self) -> str | None:
        """The cluster's id, if it has one yet."""
        try:
            return decode_cluster_id((await self.zookeeper.get(paths.CLUSTER_ID)).data)
        except NoNode:
            return None

    async def get_or_create_cluster_id(self, proposed: str) -> str:
        """The cluster's id. If there is none, `proposed` becomes it."""
        try:
            await create_recursive(self.zookeeper, paths.CLUSTER_ID, encode_cluster_id(proposed))
        except NodeExists:
            node = await self.zookeeper.get(paths.CLUSTER_ID)
            return decode_cluster_id(node.data)
        return proposed

    async def create_topic(self, topic: TopicDescription, configs: Mapping[str, str]) -> None:
        """Create a topic with its configs, in one transaction. If another broker creates the topic
        meanwhile, that topic's configs stay.

        Raises:
            NodeExists: the topic exists.
            ControllerMoved: there is no controller, or it changed meanwhile. Retry then.
        """
        while True:
            config_ops = await self.configs.replacement_ops("topics", topic.topic, configs)
            try:
                await self.topics.create(topic, config_ops)
                return
            except (BadVersion, NodeExists, NoNode) as error:
                if error.path == paths.CONTROLLER:
                    raise ControllerMoved("the controller changed meanwhile") from error
                if error.path == paths.topic(topic.topic):
                    raise
            # Another broker has written the configs, perhaps for the same topic, or their folder
            # does not exist yet.
            await ensure_path(self.zookeeper, f"{paths.CONFIG}/topics")

    async def create_feature_node(self, fence: Fence) -> None:
        """Create `/feature`, the first step of a controller's failover."""
        try:
            await fenced_multi(self.zookeeper, fence, [Create(paths.FEATURE, encode_feature())])
        except NodeExists:
            return

    async def allocate_producer_id_block(self, broker_id: int) -> ProducerIdBlock:
        """Allocate the next 1000 producer ids for this broker.

        Raises:
            KafkapyError: the ids are used up.
        """
        await ensure_path(self.zookeeper, paths.PRODUCER_ID_BLOCK)
        while True:
            node = await self.zookeeper.get(paths.PRODUCER_ID_BLOCK)
            start = decode_producer_id_block(node.data).end + 1 if node.data else 0
            if start > _LAST_PRODUCER_ID - PRODUCER_ID_BLOCK_SIZE:
                raise KafkapyError(f"producer ids are used up: the last block ends at {start - 1}")
            block = ProducerIdBlock(broker_id, start, start + PRODUCER_ID_BLOCK_SIZE - 1)
            try:
                await self.zookeeper.set(
                    paths.PRODUCER_ID_BLOCK, encode_producer_id_block(block), node.stat.version
                )
            except BadVersion:
                continue
            return block
